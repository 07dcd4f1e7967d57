"""How a session is ended: with as few questions as it takes, and told as it was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, cast

import pytest
from pyspark.errors.exceptions.connect import AnalysisException, UnknownException

from tallystick.errors import SparkUnavailable
from tallystick.spark import connect_server
from tallystick.spark.connect_runner import ConnectRunner
from tallystick.spark.connect_server import ConnectServer, OpenSession
from tests.unit.spark.test_connect_errors import told

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
