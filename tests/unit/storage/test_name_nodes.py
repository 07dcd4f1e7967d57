"""What is asked again, of whom, and what is said when nobody answers, or gives what is none."""

from __future__ import annotations

import pickle
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tallystick.errors import (
    ConfigurationError,
    FileMissing,
    RenameOutcomeUnknown,
    StorageError,
    StorageLoginFailed,
    StorageRefused,
    StorageUnavailable,
    TargetOccupied,
)
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.store_server import (
    LOST,
    NEVER,
    Answer,
    ScriptedServer,
    dead_url,
    scripted_server,
    silent_server,
)
from tests.support.tls_pipe import pipe_to, write_certificate

DONE = Answer.json({"boolean": True})
FALSE = Answer.json({"boolean": False})
RENAMED = Answer()
STATUS = Answer.json(
    {"FileStatus": {"type": "DIRECTORY", "length": 0, "pathSuffix": "", "modificationTime": 0}}
)
STANDBY = Answer.remote("StandbyException")
RETRIABLE = Answer.remote("RetriableException")
DENIED = Answer.remote("AccessControlException")
OCCUPIED = Answer.remote("FileAlreadyExistsException")
MISSING = Answer.remote("FileNotFoundException", status=404)


def store_at(*urls: str, **options: object) -> WebHdfsFileStore:
    patience = {"connect_seconds": 0.5, "answer_seconds": 30, "retry_seconds": 60}
    name_nodes = NameNodes(urls, **{"user": "ada", **patience, **options})  # type: ignore[arg-type]
    return WebHdfsFileStore(name_nodes, "hdfs://nn")


@pytest.fixture
def silence() -> Iterator[str]:
    with silent_server() as url:
        yield url


def test_the_active_name_node_is_found_and_remembered() -> None:
    with scripted_server(STANDBY) as standby, scripted_server(FALSE, DONE) as active:
        store = store_at(standby.url, active.url)
        assert store.delete("/a")
        assert store.delete("/a")
    assert (standby.asked, active.asked) == (
        ["SETREPLICATION"],
        ["SETREPLICATION", *["DELETE"] * 2],
    )


def test_an_observer_is_passed_over_though_it_would_answer() -> None:
    lags = Answer.remote("ObserverRetryOnActiveException")
    with scripted_server(lags, STATUS) as observer, scripted_server(FALSE, MISSING) as active:
        assert store_at(observer.url, active.url).status("/a") is None
    assert (observer.asked, len(active.asked)) == (["SETREPLICATION"], 2)


def test_each_of_three_is_asked_in_one_round() -> None:
    with (
        scripted_server(STANDBY) as first,
        scripted_server(FALSE, RETRIABLE) as second,
        scripted_server(FALSE, DONE) as third,
    ):
        store = store_at(first.url, second.url, third.url, retry_seconds=0)
        assert store.delete("/a")
    assert len(first.asked) == 1


def test_who_may_not_write_there_is_answered_by_the_active_one() -> None:
    with scripted_server(DENIED, STATUS) as active:
        assert store_at(active.url, dead_url()).status("/a")
    assert len(active.asked) == 2


def test_a_rename_before_which_nobody_was_active_has_not_happened() -> None:
    with scripted_server(LOST) as first, pytest.raises(StorageUnavailable) as caught:
        store_at(first.url, dead_url(), retry_seconds=0).rename_exclusive("/s", "/t/x")
    assert not isinstance(caught.value, RenameOutcomeUnknown)


def test_a_dead_name_node_is_passed_over() -> None:
    with scripted_server(DONE) as active:
        assert store_at(dead_url(), active.url).delete("/a")


def test_come_back_later_is_obeyed() -> None:
    with scripted_server(RETRIABLE, STANDBY, DONE) as server:
        assert store_at(server.url).delete("/a")
    assert server.asked == ["DELETE"] * 3


def test_a_lost_answer_is_asked_for_again_where_that_is_harmless() -> None:
    with scripted_server(LOST, DONE) as server:
        assert store_at(server.url).delete("/a")


def test_a_rename_that_was_surely_not_done_is_tried_again() -> None:
    with scripted_server(FALSE, DONE, RETRIABLE, FALSE, RENAMED) as server:
        store_at(dead_url(), server.url).rename_exclusive("/s", "/t/x")
    is_active = "SETREPLICATION"
    assert server.asked == [is_active, "MKDIRS", "RENAME", is_active, "RENAME"]
    assert server.queries[-1]["renameoptions"] == ["NONE"]


def test_a_rename_with_a_lost_answer_is_never_tried_again() -> None:
    with (
        scripted_server(FALSE, DONE, LOST, MISSING) as first,
        scripted_server(DONE, MISSING) as second,
        pytest.raises(RenameOutcomeUnknown, match="unknown if /s was renamed to /t/x") as caught,
    ):
        store_at(first.url, second.url).rename_exclusive("/s", "/t/x")
    assert (first.asked, second.asked) == (["SETREPLICATION", "MKDIRS", "RENAME"], [])
    assert isinstance(caught.value, StorageUnavailable)
    assert caught.value.retry


def test_a_rename_that_times_out_is_unknown() -> None:
    with (
        scripted_server(DONE, NEVER) as server,
        pytest.raises(RenameOutcomeUnknown, match="did not answer in time"),
    ):
        store_at(server.url, answer_seconds=2).rename_exclusive("/s", "/t/x")
    assert server.asked == ["MKDIRS", "RENAME"]


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ((DONE, OCCUPIED), TargetOccupied),
        ((DONE, MISSING, MISSING), FileMissing),
        # HDFS has one name for a missing source and a parent that somebody deleted meanwhile.
        ((DONE, MISSING, STATUS), StorageUnavailable),
        # A gateway without the option: nothing done, and something done.
        ((DONE, Answer.json({"boolean": False})), StorageRefused),
        ((DONE, Answer.json({"boolean": True})), RenameOutcomeUnknown),
    ],
)
def test_a_refused_rename(answers: tuple[Answer, ...], error: type[Exception]) -> None:
    with scripted_server(*answers) as server, pytest.raises(error) as caught:
        store_at(server.url).rename_exclusive("/s", "/t/x")
    assert type(caught.value) is error


def test_the_patience_is_bounded(silence: str) -> None:
    began = time.monotonic()
    with pytest.raises(StorageUnavailable, match=r"127\.0\.0\.1:\d+ did not answer in time"):
        store_at(silence, answer_seconds=0.3, retry_seconds=0.6).status("/a")
    assert time.monotonic() - began < 0.6 + 0.3 + 2.0


def test_a_dead_port_is_unavailable() -> None:
    with pytest.raises(StorageUnavailable, match="takes no connections") as caught:
        store_at(dead_url(), retry_seconds=0.1).read("/a")
    assert caught.value.retry


@pytest.mark.parametrize("how", ["refused", "lost", "silent"])
def test_a_token_is_in_no_text(how: str, silence: str) -> None:
    with scripted_server(LOST) as server:
        url = {"refused": dead_url(), "lost": server.url, "silent": silence}[how]
        store = store_at(
            url, user=None, token="s3cret-token", answer_seconds=0.5, retry_seconds=0.1
        )
        with pytest.raises(StorageUnavailable) as caught:
            store.status("/a")
        assert how != "lost" or server.queries[0]["delegation"] == ["s3cret-token"]
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (Answer.remote("SafeModeException"), StorageUnavailable, "the NameNode is in safe mode"),
        (Answer.remote("AccessControlException"), StorageRefused, "in HDFS's words"),
        (Answer.remote("DSQuotaExceededException"), StorageRefused, "space quota is used up"),
        (Answer.remote("NSQuotaExceededException"), StorageRefused, "name quota is used up"),
        (Answer.remote("InvalidToken"), StorageRefused, "in HDFS's words"),
        (Answer.remote("FileNotFoundException"), FileMissing, "/a does not exist"),
        (Answer.remote("IOException", "only 0 nodes"), StorageUnavailable, "IOException: only 0"),
        (Answer(401, b"<html>"), StorageLoginFailed, "authentication"),
        (Answer(502, b"<html>"), StorageUnavailable, "HTTP status 502"),
        (Answer(404, b"<html>"), StorageRefused, "is this WebHDFS"),
        (Answer(400, b'{"error": 1}'), StorageRefused, "is this WebHDFS"),
        (Answer(503, b'{"error": 1}'), StorageUnavailable, "HTTP status 503"),
        (Answer.remote("SecurityException", status=401), StorageLoginFailed, "authentication"),
        (Answer(200, b"[]"), StorageRefused, "not WebHDFS's"),
        (Answer(200, b"<html>"), StorageRefused, "not WebHDFS's"),
    ],
)
def test_every_refusal_is_said_in_our_words(
    answer: Answer, error: type[Exception], words: str
) -> None:
    with scripted_server(answer) as server, pytest.raises(error, match=words) as caught:
        store_at(server.url, retry_seconds=0.6).entries("/a")
    assert type(caught.value) is error
    assert "at line 2" not in str(caught.value)


def test_a_short_answer_is_no_answer() -> None:
    with scripted_server(Answer(200, b"abc")) as server, pytest.raises(StorageUnavailable):
        store_at(server.url).read_range("/a", 0, 4)


def test_who_asks_is_said_as_configured() -> None:
    with scripted_server(DONE) as server:
        store_at(server.url, proxy_user="bob").delete("/a")
    assert (server.queries[0]["user.name"], server.queries[0]["doas"]) == (["ada"], ["bob"])


@pytest.mark.parametrize("url", ["nn:9870", "ftp://nn", "http://", "http://ada:s3cret@nn:9870"])
def test_a_url_with_a_password_or_without_a_server_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        store_at(url)
    assert "s3cret" not in str(caught.value)


def test_no_name_node_at_all_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        store_at()


def test_kerberos_without_its_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)  # as if it weren't installed
    monkeypatch.delitem(sys.modules, "tallystick.storage.negotiation", raising=False)
    with pytest.raises(ConfigurationError) as caught:
        store_at("http://nn:9870", kerberos=True, where="connection c")
    said = str(caught.value)
    assert "connection c: extra kerberos" in said
    assert "requests-gssapi is installed (docs/install.md, A secured HDFS" in said


@pytest.mark.parametrize("key", ["verify", "keytab"])
def test_a_file_that_is_not_there_is_named_before_anything_is_asked(key: str) -> None:
    with pytest.raises(ConfigurationError, match=f"connection c: extra {key} is '/no/such'"):
        store_at("https://nn:9871", where="connection c", **{key: "/no/such"})


def test_an_untrusted_certificate_is_a_refusal_that_names_the_file(tmp_path: Path) -> None:
    theirs = write_certificate(tmp_path / "theirs.pem", "localhost")
    other = write_certificate(tmp_path / "other.pem", "localhost")
    with scripted_server(DONE) as server, pipe_to(urlsplit(server.url).port or 0, theirs) as pipe:
        url = f"https://127.0.0.1:{pipe.port}"
        assert store_at(url, verify=str(theirs)).delete("/a")
        for verify, words in ((True, "extra verify names"), (str(other), str(other))):
            with pytest.raises(StorageLoginFailed) as caught:
                store_at(url, verify=verify, where="connection c").delete("/a")
            said = str(caught.value)
            assert f"the certificate of 127.0.0.1:{pipe.port} is not trusted" in said
            assert words in said
            assert "connection c" in said
            assert not caught.value.retry
    assert server.asked == ["DELETE"]


@pytest.mark.parametrize(
    "answer",
    [Answer.remote("AccessControlException"), Answer(401), Answer(502), STANDBY, LOST, Answer(200)],
)
def test_every_error_names_the_server_and_the_connection(answer: Answer) -> None:
    with scripted_server(answer) as server, pytest.raises(StorageError) as caught:
        store_at(server.url, where="connection c", retry_seconds=0.1).entries("/a")
    server_of_c = f"HDFS at {urlsplit(server.url).netloc} (connection c)"
    assert server_of_c in str(caught.value)
    assert server_of_c in str(pickle.loads(pickle.dumps(caught.value)))


def test_a_file_system_that_is_no_uri_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        WebHdfsFileStore(NameNodes(["http://nn:9870"]), "nn:8020")


def test_an_empty_directory_whose_deletion_was_not_heard_of_is_not_there() -> None:
    with scripted_server(STATUS, LOST, Answer.json({"boolean": False})) as server:
        assert not store_at(server.url).delete_empty("/a")
    assert server.asked == ["GETFILESTATUS", "DELETE", "DELETE"]


ACTIVE = Answer.json({"boolean": False})
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


def store_of(*urls: str, **options: object) -> WebHdfsFileStore:
    settings = {"user": "ada", "retry_seconds": 60, "where": "connection c", **options}
    return WebHdfsFileStore(NameNodes(urls, **settings), "hdfs://nn")  # type: ignore[arg-type]


@pytest.mark.parametrize("answer", NOT_HDFS, ids=IDS)
def test_what_is_no_answer_does_not_hide_the_active_name_node(
    stack: ExitStack, answer: Answer
) -> None:
    first, active = server(stack, answer), server(stack, ACTIVE, DONE)
    store = store_of(first.url, active.url)
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
    assert store_of(*urls, verify=str(tmp_path / "ours")).delete("/a")
    with pytest.raises(StorageLoginFailed, match="is not trusted"):
        store_of(urls[0], verify=str(tmp_path / "ours")).delete("/a")


def test_a_login_that_is_refused_is_an_answer(stack: ExitStack) -> None:
    """Asked again and again, it could lock the account."""
    first, second = server(stack, Answer(401, PAGE)), server(stack, STANDBY)
    with pytest.raises(StorageLoginFailed):
        store_of(first.url, second.url).delete("/a")
    assert (len(first.asked), len(second.asked)) == (1, 0)


def test_where_none_answers_each_reason_is_told_and_a_retry_may_help(stack: ExitStack) -> None:
    first, second = server(stack, Answer(404, PAGE)), server(stack, STANDBY)
    with pytest.raises(StorageUnavailable) as caught:
        store_of(first.url, second.url, retry_seconds=2).delete("/a")
    assert "HTTP status 404: is this WebHDFS?" in str(caught.value)
    assert "StandbyException" in str(caught.value)
    assert len(second.asked) > 1


def test_where_none_can_ever_answer_it_is_said_at_once(stack: ExitStack) -> None:
    first, second = server(stack, Answer(404, PAGE)), server(stack, Answer(200, PAGE))
    with pytest.raises(StorageRefused, match=r"is this WebHDFS.*not WebHDFS's"):
        store_of(first.url, second.url).delete("/a")
    assert (len(first.asked), len(second.asked)) == (1, 1)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 408])
def test_a_rename_that_a_gateway_has_lost_may_have_happened(stack: ExitStack, status: int) -> None:
    first, second = server(stack, ACTIVE, DONE, Answer(status, PAGE)), server(stack, RENAMED)
    with pytest.raises(RenameOutcomeUnknown) as caught:
        store_of(first.url, second.url).rename_exclusive("/s", "/t/x")
    assert f"unknown if /s was renamed to /t/x: the server answered HTTP status {status}" in str(
        caught.value
    )
    assert caught.value.retry
    assert (first.asked, second.asked) == (["SETREPLICATION", "MKDIRS", "RENAME"], [])


def test_a_rename_whose_success_can_t_be_read_may_have_happened(stack: ExitStack) -> None:
    first, second = server(stack, ACTIVE, DONE, Answer(200, PAGE)), server(stack, RENAMED)
    with pytest.raises(RenameOutcomeUnknown):
        store_of(first.url, second.url).rename_exclusive("/s", "/t/x")
    assert second.asked == []


def test_a_redirect_that_leads_nowhere_is_no_rename(stack: ExitStack) -> None:
    name_node = server(stack, DONE, Answer(302))
    with pytest.raises(StorageRefused, match="HTTP status 302"):
        store_of(name_node.url).rename_exclusive("/s", "/t/x")


@pytest.mark.parametrize("answer", [Answer(404, PAGE), Answer(429, PAGE), STANDBY])
def test_a_rename_that_was_surely_not_done_is_asked_of_the_other_one(
    stack: ExitStack, answer: Answer
) -> None:
    first = server(stack, ACTIVE, DONE, answer)
    second = server(stack, ACTIVE, RENAMED)
    store_of(first.url, second.url).rename_exclusive("/s", "/t/x")
    is_active = "SETREPLICATION"
    assert first.asked == [is_active, "MKDIRS", "RENAME"]
    assert second.asked == [is_active, "RENAME"]


def test_come_back_later_without_hdfs_s_words_is_obeyed(stack: ExitStack) -> None:
    gateway = server(stack, Answer(503, PAGE), DONE)
    assert store_of(dead_url(), gateway.url).delete("/a")
