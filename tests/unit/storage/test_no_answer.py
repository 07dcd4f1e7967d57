"""What one NameNode says that is no answer of WebHDFS never hides another one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tallystick.errors import (
    RenameOutcomeUnknown,
    StorageLoginFailed,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.store_server import Answer, ScriptedServer, dead_url, scripted_server
from tests.support.tls_pipe import pipe_to, write_certificate

DONE = Answer.json({"boolean": True})
ACTIVE = Answer.json({"boolean": False})
RENAMED = Answer()
STANDBY = Answer.remote("StandbyException")
PAGE = b"<html>"
# Beside a NameNode that is up: one that is starting, a gateway without it, another service.
NOT_HDFS = [
    *(Answer(status, PAGE) for status in (500, 502, 503, 504, 408, 429, 400, 403, 404)),
    Answer(302),
    Answer(200, PAGE),
    Answer(200, b"[]"),
]
IDS = [f"{answer.status} {answer.body.decode()}" for answer in NOT_HDFS]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def server(stack: ExitStack, *answers: Answer) -> ScriptedServer:
    return stack.enter_context(scripted_server(*answers))


def store_at(*urls: str, **options: object) -> WebHdfsFileStore:
    settings = {"user": "ada", "retry_seconds": 60, "where": "connection c", **options}
    return WebHdfsFileStore(NameNodes(urls, **settings), "hdfs://nn")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", NOT_HDFS, ids=IDS)
def test_what_is_no_answer_does_not_hide_the_active_name_node(
    stack: ExitStack, answer: Answer
) -> None:
    first, active = server(stack, answer), server(stack, ACTIVE, DONE)
    store = store_at(first.url, active.url)
    assert store.delete("/a")
    assert store.delete("/a")
    assert (len(first.asked), len(active.asked)) == (1, 3)


def test_a_name_node_that_is_not_trusted_does_not_hide_the_active_one(
    stack: ExitStack, tmp_path: Path
) -> None:
    urls = []
    for name in ("theirs", "ours"):
        certificate = write_certificate(tmp_path / name, "localhost")
        port = urlsplit(server(stack, DONE).url).port or 0
        urls.append(f"https://127.0.0.1:{stack.enter_context(pipe_to(port, certificate)).port}")
    assert store_at(*urls, verify=str(tmp_path / "ours")).delete("/a")
    with pytest.raises(StorageLoginFailed, match="is not trusted"):
        store_at(urls[0], verify=str(tmp_path / "ours")).delete("/a")


def test_a_login_that_is_refused_is_an_answer(stack: ExitStack) -> None:
    """Asked again and again, it could lock the account."""
    first, second = server(stack, Answer(401, PAGE)), server(stack, STANDBY)
    with pytest.raises(StorageLoginFailed):
        store_at(first.url, second.url).delete("/a")
    assert (len(first.asked), len(second.asked)) == (1, 0)


def test_where_none_answers_each_reason_is_told_and_a_retry_may_help(stack: ExitStack) -> None:
    first, second = server(stack, Answer(404, PAGE)), server(stack, STANDBY)
    with pytest.raises(StorageUnavailable) as caught:
        store_at(first.url, second.url, retry_seconds=2).delete("/a")
    assert "HTTP status 404: is this WebHDFS?" in str(caught.value)
    assert "StandbyException" in str(caught.value)
    assert len(second.asked) > 1


def test_where_none_can_ever_answer_it_is_said_at_once(stack: ExitStack) -> None:
    first, second = server(stack, Answer(404, PAGE)), server(stack, Answer(200, PAGE))
    with pytest.raises(StorageRefused, match=r"is this WebHDFS.*not WebHDFS's"):
        store_at(first.url, second.url).delete("/a")
    assert (len(first.asked), len(second.asked)) == (1, 1)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
def test_a_rename_that_a_gateway_has_lost_may_have_happened(stack: ExitStack, status: int) -> None:
    first, second = server(stack, ACTIVE, DONE, Answer(status, PAGE)), server(stack, RENAMED)
    with pytest.raises(RenameOutcomeUnknown) as caught:
        store_at(first.url, second.url).rename_exclusive("/s", "/t/x")
    assert f"unknown if /s was renamed to /t/x: the server answered HTTP status {status}" in str(
        caught.value
    )
    assert caught.value.retry
    assert (first.asked, second.asked) == (["SETREPLICATION", "MKDIRS", "RENAME"], [])


def test_a_rename_whose_success_can_t_be_read_may_have_happened(stack: ExitStack) -> None:
    first, second = server(stack, ACTIVE, DONE, Answer(200, PAGE)), server(stack, RENAMED)
    with pytest.raises(RenameOutcomeUnknown):
        store_at(first.url, second.url).rename_exclusive("/s", "/t/x")
    assert second.asked == []


def test_a_redirect_that_leads_nowhere_is_no_rename(stack: ExitStack) -> None:
    name_node = server(stack, DONE, Answer(302))
    with pytest.raises(StorageRefused, match="HTTP status 302"):
        store_at(name_node.url).rename_exclusive("/s", "/t/x")


@pytest.mark.parametrize("answer", [Answer(404, PAGE), Answer(429, PAGE), STANDBY])
def test_a_rename_that_was_surely_not_done_is_asked_of_the_other_one(
    stack: ExitStack, answer: Answer
) -> None:
    first = server(stack, ACTIVE, DONE, answer)
    second = server(stack, ACTIVE, RENAMED)
    store_at(first.url, second.url).rename_exclusive("/s", "/t/x")
    is_active = "SETREPLICATION"
    assert first.asked == [is_active, "MKDIRS", "RENAME"]
    assert second.asked == [is_active, "RENAME"]


def test_come_back_later_without_hdfs_s_words_is_obeyed(stack: ExitStack) -> None:
    gateway = server(stack, Answer(503, PAGE), DONE)
    assert store_at(dead_url(), gateway.url).delete("/a")
