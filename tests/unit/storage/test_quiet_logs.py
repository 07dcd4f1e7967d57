"""A token that is planted in a connection is looked for in all logs."""

from __future__ import annotations

import logging

import pytest

from tallystick.errors import StorageError
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.session import keep_secrets_from_logs
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.store_server import GARBLED, LOST, Answer, scripted_server

TOKEN = "s3cret-token"


def write_and_read(answer: Answer) -> list[str]:
    """The operations that the server was asked for."""
    with scripted_server(answer, Answer(201)) as server:
        if answer.status == 307:
            server.answers[0] = Answer(307, location=server.url)
        store = WebHdfsFileStore(
            NameNodes([server.url], token=TOKEN, retry_seconds=0.1), "hdfs://n"
        )
        for ask in (lambda: store.write("/a", b"content"), lambda: store.status("/a")):
            try:
                ask()
            except StorageError as error:
                assert "s3cret" not in str(error)  # noqa: PT017
    assert server.queries[0]["delegation"] == [TOKEN]
    return server.asked


@pytest.mark.parametrize(
    "answer", [Answer(307), GARBLED, LOST, Answer(503)], ids=["led on", "garbled", "lost", "503"]
)
@pytest.mark.parametrize("level", ["DEBUG", "WARNING"])
def test_a_token_is_in_no_log(caplog: pytest.LogCaptureFixture, level: str, answer: Answer) -> None:
    caplog.set_level(level)
    asked = write_and_read(answer)
    assert "s3cret" not in caplog.text
    assert level != "DEBUG" or f"op={asked[0]}" in caplog.text
    assert level != "WARNING" or answer is not GARBLED or "(not shown)" in caplog.text


def test_a_library_that_logs_an_error_s_text_is_blotted_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keep_secrets_from_logs()
    keep_secrets_from_logs()
    log = logging.getLogger("urllib3.connectionpool")
    assert len(log.filters) == len(set(log.filters))
    try:
        raise ValueError(f"/a?op=OPEN&delegation={TOKEN}")
    except ValueError:
        log.warning("lost %s", f"/a?delegation={TOKEN}&op=OPEN", exc_info=True)
    assert "s3cret" not in caplog.text
    assert "lost /a?delegation=(not shown)&op=OPEN" in caplog.text
