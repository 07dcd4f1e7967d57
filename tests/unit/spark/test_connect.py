"""Spark Connect without a server: its sessions, what its client tells, what its errors mean."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast
from uuid import uuid4

import grpc
import pytest
from pyspark.errors.exceptions.base import PySparkAssertionError
from pyspark.errors.exceptions.connect import (
    AnalysisException,
    SparkConnectGrpcException,
    SparkException,
    UnknownException,
)
from pyspark.sql.connect.shell.progress import Progress as Request
from pyspark.sql.connect.shell.progress import StageInfo

from tallystick.errors import ApplicationOverdue, SparkRefused, SparkUnavailable
from tallystick.spark import connect_server
from tallystick.spark.connect_errors import is_lost, server_error
from tallystick.spark.connect_progress import Tasks, tasks_counted
from tallystick.spark.connect_runner import ConnectRunner
from tallystick.spark.connect_server import ConnectServer, OpenSession, _sees
from tallystick.spark.session_settings import SessionChanged

ADDRESS = "sc://127.0.0.1:1"


def test_a_session_that_is_closed_leaves_no_client_in_memory() -> None:
    server = ConnectServer(ADDRESS, lambda each: f"{ADDRESS}/;session_id={each};user_id=vera")
    clients = []
    for _ in range(5):
        session = server._opened(str(uuid4()), 1)
        clients.append(weakref.ref(session.spark.client))
        session.close()
    del session
    gc.collect()

    # PySpark itself holds the first one.
    assert [each() for each in clients[1:]] == [None] * 4


def test_a_session_that_is_cleared_away_leaves_the_others_their_threads() -> None:
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

    threads = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()
    server = ConnectServer(ADDRESS, lambda each: f"{ADDRESS}/;session_id={each};user_id=vera")
    for _ in range(2):  # PySpark itself holds the first one
        server._opened(str(uuid4()), 1).close()
    gc.collect()

    assert ExecutePlanResponseReattachableIterator._release_thread_pool_instance is threads
    assert threads.submit(lambda: 7).result() == 7


class WireError(grpc.RpcError, grpc.Call):  # type: ignore[misc]
    """As gRPC raises it."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class RetriesExceeded(Exception):
    """As PySpark 4.0 raises it after it has tried in vain; 4.1 raises the last try's own error."""

    def getCondition(self) -> str:
        return "RETRIES_EXCEEDED"


def told(code: str, details: str) -> Exception:
    """As PySpark raises it."""
    error = SparkConnectGrpcException(f"<_InactiveRpcError of {details}>")
    error.__cause__ = WireError(grpc.StatusCode[code], details)
    return error


SESSION = "00000000-0000-0000-0000-000000000001"
CLOSED = AnalysisException(
    "closed", errorClass="INVALID_HANDLE.SESSION_CLOSED", messageParameters={}
)
TOO_EARLY = UnknownException("(java.lang.IllegalStateException) status ReadyForExecution is not")
AWAY = told("UNAVAILABLE", "Connection refused")


@dataclass
class Requests:
    """What a server is asked, and what it answers next: an error, or that it is done."""

    answers: list[Exception | None] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    clients: int = 0

    def interruptAll(self) -> None:
        self._ask("interrupt")

    def release_session(self) -> None:
        self._ask("release")

    @property
    def client(self) -> Requests:
        return self

    def _ask(self, what: str) -> None:
        self.asked.append(what)
        error = self.answers.pop(0) if self.answers else None
        if error:
            raise error


@pytest.fixture
def server_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Requests], ConnectServer]:
    monkeypatch.setattr(connect_server, "_MOMENT_SECONDS", 0)

    def build(requests: Requests) -> ConnectServer:
        session = OpenSession(SESSION, cast("Any", requests), lambda: None)

        def opened(*_: object) -> OpenSession:
            requests.clients += 1
            return session

        monkeypatch.setattr(ConnectServer, "_opened", opened)
        monkeypatch.setattr(ConnectServer, "_prepare", lambda *_, **__: None)
        return ConnectServer("sc://h:15002", str)

    return build


Build = Callable[[Requests], ConnectServer]


@pytest.mark.parametrize(
    ("answers", "asked", "is_heard", "said"),
    [
        ([], ["interrupt", "release"], True, ""),
        ([CLOSED], ["interrupt"], True, ""),
        ([None, TOO_EARLY], ["interrupt", "release", "release"], True, ""),
        ([None, TOO_EARLY, AWAY], ["interrupt", "release", "release"], False, "is not ended"),
        ([AWAY], ["interrupt"], False, "is not ended"),
    ],
    ids=["runs", "has ended", "interrupted just now", "dies", "away"],
)
def test_a_session_is_ended_or_it_is_said_that_it_is_not(
    server_of: Build,
    caplog: pytest.LogCaptureFixture,
    answers: list[Exception | None],
    asked: list[str],
    is_heard: bool,
    said: str,
) -> None:
    caplog.set_level("INFO")
    requests = Requests(list(answers))

    assert server_of(requests).end_session(SESSION) is is_heard

    assert requests.asked == asked
    assert said in caplog.text
    assert bool(caplog.text) is bool(said)


@pytest.mark.parametrize(
    ("is_opened_again", "fails", "asked"),
    [
        (False, False, ["release"]),
        (True, False, []),
        (False, True, ["interrupt", "release"]),
        (True, True, ["interrupt"]),
    ],
)
def test_work_that_went_well_has_nothing_left_to_interrupt(
    server_of: Build, is_opened_again: bool, fails: bool, asked: list[str]
) -> None:
    requests = Requests()
    session = server_of(requests).session(
        SESSION, {}, reads_kafka=False, is_opened_again=is_opened_again
    )

    with suppress(SparkUnavailable), session:
        if fails:
            raise AWAY

    assert requests.asked == asked
    assert requests.clients == (2 if fails else 1)


def test_a_session_whose_own_client_can_not_release_it_is_ended_by_another(
    server_of: Build,
) -> None:
    requests = Requests([ValueError("closed channel"), ValueError("closed channel")])

    with server_of(requests).session(SESSION, {}, reads_kafka=False):
        pass

    assert requests.asked == ["release", "release", "interrupt", "release"]
    assert requests.clients == 2


def test_a_silent_server_is_asked_for_one_of_an_attempt_s_two_sessions(server_of: Build) -> None:
    requests = Requests([AWAY])

    assert not ConnectRunner(server_of(requests), {}, timedelta(minutes=1)).interrupt("a")

    assert requests.asked == ["interrupt"]


class Session:
    """Keeps handlers as Spark's session does, and tells them with Spark's own class."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def registerProgressHandler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Any) -> None:
        self.handlers.remove(handler)

    def request(self, name: str, *stages: StageInfo) -> None:
        with Request(handlers=self.handlers, operation_id=name) as request:
            if stages:
                request.update_ticks(stages, 1)


def stage(done: int, total: int, size: int = 0) -> StageInfo:
    return StageInfo(1, total, done, size, done == total)


def test_tasks_and_bytes_are_added_up_over_stages_and_requests() -> None:
    session, told = Session(), list[Tasks]()
    with tasks_counted(session, told.append):  # type: ignore[arg-type]
        session.request("a", stage(1, 2, 10), stage(0, 3))
        session.request("b", stage(2, 2, 5))
        session.request("c")

    assert told[0] == Tasks(1, 5, 10, has_begun=True)
    assert told[-2] == Tasks(3, 7, 15, has_begun=True)
    assert session.handlers == []


def test_all_tasks_are_told_as_done_once_the_work_is_though_the_server_counts_late() -> None:
    session, told = Session(), list[Tasks]()
    with tasks_counted(session, told.append):  # type: ignore[arg-type]
        session.request("a", stage(5, 6, 10))

    assert told[-2:] == [Tasks(done, 6, 10, has_begun=True) for done in (5, 6)]


def test_who_hears_it_and_fails_is_told_of_once_and_asked_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session, asked = Session(), list[Tasks]()

    def failing(tasks: Tasks) -> None:
        asked.append(tasks)
        raise ValueError("no such terminal")

    with (
        caplog.at_level(logging.WARNING, "tallystick"),
        tasks_counted(session, failing),  # type: ignore[arg-type]
    ):
        session.request("a", stage(1, 2))
        session.request("b", stage(1, 2))

    assert len(asked) == 1
    [record] = caplog.records
    assert record.getMessage() == "Progress of Spark is told no more; the work goes on."
    assert "no such terminal" in caplog.text


def test_work_that_fails_leaves_no_handler_and_is_not_told_as_done() -> None:
    session, told = Session(), list[Tasks]()

    def fail() -> None:
        session.request("a", stage(1, 2))
        raise RuntimeError

    with pytest.raises(RuntimeError), tasks_counted(session, told.append):  # type: ignore[arg-type]
        fail()
    assert session.handlers == []
    assert told[-1] == Tasks(1, 2, 0, has_begun=True)


SERVER = "sc://h:15002"
TLS = "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:15002: "
HANDSHAKE = (
    TLS + "Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1:SSL routines:"
)


REFUSED = [
    ("UNAUTHENTICATED", "Invalid authentication token"),
    ("PERMISSION_DENIED", "not yours"),
    ("UNIMPLEMENTED", "Method not found: spark.connect.SparkConnectService/Config"),
    ("UNAVAILABLE", HANDSHAKE + "OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: self signed"),
    ("UNAVAILABLE", HANDSHAKE + "OPENSSL_internal:WRONG_VERSION_NUMBER: OK"),
    ("UNAVAILABLE", TLS + "Custom verification check failed: Hostname Verification Check failed."),
]
GONE = [
    ("UNAVAILABLE", TLS + "Failed to connect to remote host: Connection refused"),
    ("UNAVAILABLE", HANDSHAKE + "Socket closed"),
    ("UNAVAILABLE", "errors resolving h:15002: Domain name not found"),
    ("RESOURCE_EXHAUSTED", "too many streams"),
    ("UNKNOWN", "Application error processing RPC"),
    ("CANCELLED", "Channel closed!"),
]


@pytest.mark.parametrize(("code", "details"), REFUSED)
def test_a_connection_that_does_not_fit_the_server_is_not_tried_again(
    code: str, details: str
) -> None:
    error = server_error(SERVER, told(code, details))

    assert isinstance(error, SparkRefused)
    assert error.args == (SERVER, f"{code}: {details}")
    assert not error.retry


@pytest.mark.parametrize(("code", "details"), GONE)
def test_a_server_that_is_not_there_is_tried_again_and_its_reason_is_told(
    code: str, details: str
) -> None:
    error = server_error(SERVER, told(code, details))

    assert isinstance(error, SparkUnavailable)
    assert details in error.args[1]
    assert error.retry


def test_a_server_that_was_tried_in_vain_by_an_older_client_is_not_there() -> None:
    error = RetriesExceeded()
    error.__cause__ = WireError(grpc.StatusCode.UNAVAILABLE, "Connection refused")
    assert isinstance(server_error(SERVER, error), SparkUnavailable)


LOST = [
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "RESPONSE_ALREADY_RECEIVED",
]


@pytest.mark.parametrize("condition", LOST)
def test_a_session_that_is_lost_is_tried_again(condition: str) -> None:
    error = AnalysisException("gone", errorClass=condition, messageParameters={})
    assert isinstance(server_error(SERVER, error), SparkUnavailable)


def test_another_server_at_the_same_address_has_lost_the_session() -> None:
    error = PySparkAssertionError("Received incorrect server side session identifier for request")
    assert isinstance(server_error(SERVER, error), SparkUnavailable)


def test_a_session_that_somebody_else_has_changed_is_not_ours_any_more() -> None:
    error = server_error(SERVER, SessionChanged("other code has set spark.sql.x meanwhile"))
    assert isinstance(error, SparkUnavailable)


@pytest.mark.parametrize(
    "words",
    [
        "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:",
        "Job 3 cancelled because SparkContext was shut down",
    ],
)
def test_a_server_whose_context_has_ended_is_lost_and_no_batch_is_to_blame(words: str) -> None:
    error = SparkException(words)

    assert isinstance(server_error(SERVER, error), SparkUnavailable)


def test_work_that_has_failed_is_not_the_server_s_fault() -> None:
    error = AnalysisException("no", errorClass="PATH_NOT_FOUND", messageParameters={})
    assert server_error(SERVER, error) is None
    assert not is_lost(error)


def test_a_read_that_fails_after_an_overdue_landing_is_not_the_server_s_fault() -> None:
    overdue = ApplicationOverdue("batch b", "connect:1", "0:01:00")
    overdue.__cause__ = told("CANCELLED", "Channel closed!")
    try:
        raise overdue
    except ApplicationOverdue:
        with pytest.raises(SparkException) as read:
            raise SparkException("no such record", errorClass="FAILED_READ_FILE") from None

    assert not is_lost(read.value)
    assert server_error(SERVER, read.value) is None


def test_a_condition_that_only_resembles_a_lost_handle_is_the_work_s_own() -> None:
    error = AnalysisException("no", errorClass="INVALID_HANDLER", messageParameters={})
    assert not is_lost(error)


URI = "hdfs://nowhere.invalid:8020/plan.json"


class Blind:
    """A session whose reads fail with these words."""

    def __init__(self, words: str) -> None:
        self.read, self._words = self, words

    def text(self, uri: str) -> Any:
        raise RuntimeError(self._words)


def is_seen(words: str) -> bool:
    return _sees(cast("Any", Blind(words)), URI)


def test_a_file_system_that_is_unknown_there_is_no_failure_and_the_log_says_what_spark_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert not is_seen("java.net.UnknownHostException: nowhere.invalid")

    assert "UnknownHostException" in caplog.text


def test_a_plan_that_is_gone_is_no_setting() -> None:
    with pytest.raises(RuntimeError, match="PATH_NOT_FOUND"):
        is_seen("PATH_NOT_FOUND")
