"""A wire that breaks: what is known, what is not, and how it is found out afterwards."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tallystick.domain.batches.batch import Attempt, BatchStatus
from tallystick.domain.batches.states import BatchState, CommitAnswer
from tallystick.domain.identities import AttemptId
from tallystick.errors import CommitOutcomeUnknown, LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tests.support.ledger_proxy import Cut, LedgerProxy
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, MINUTE, OWNER, TOPIC, LedgerStory
from tests.support.ledger_waiting import until_somebody_waits


@pytest.fixture
def attempt(story: LedgerStory) -> Attempt:
    """An attempt that may commit."""
    story.open({0: (0, 100)})
    return story.verified((0, 0, 20))


class Wires:
    """Ledgers behind wires that break."""

    def __init__(self, server: LedgerServer, database: str) -> None:
        self._server, self._database = server, database

    @contextmanager
    def to_be_cut(
        self, cut: Cut, *, marker: bytes = b"COMMIT\0"
    ) -> Iterator[tuple[Ledger, LedgerProxy]]:
        """A ledger that is connected already, and whose wire breaks at the marker."""
        with LedgerProxy(self._server.port, marker=marker) as proxy:
            ledger = Ledger(self._server.dsn(self._database, port=proxy.port))
            ledger.findings(FEED)
            proxy.cut = cut
            yield ledger, proxy
            ledger.close()


@pytest.fixture
def wires(ledger_server: LedgerServer, ledger_database: str) -> Wires:
    """Makes ledgers whose connection can be cut."""
    return Wires(ledger_server, ledger_database)


def test_a_commit_that_never_arrived_is_unknown_and_did_not_happen(
    story: LedgerStory, attempt: Attempt, wires: Wires
) -> None:
    with wires.to_be_cut(Cut.REQUEST) as (ledger, _):
        with pytest.raises(CommitOutcomeUnknown) as caught:
            ledger.commit(attempt)
        assert caught.value.args[:2] == (attempt.batch_id, attempt.attempt_id)
        assert ledger.take_up(attempt, MINUTE)
        assert ledger.commit(attempt) is CommitAnswer.COMMITTED
    assert story.account().frontier == 20


def test_a_commit_whose_answer_was_lost_is_unknown_and_did_happen(
    story: LedgerStory, attempt: Attempt, wires: Wires
) -> None:
    with wires.to_be_cut(Cut.ANSWER) as (ledger, _):
        with pytest.raises(CommitOutcomeUnknown):
            ledger.commit(attempt)
        assert ledger.take_up(attempt, MINUTE) is None
        assert ledger.commit(attempt) is CommitAnswer.ALREADY_COMMITTED
    assert story.account().frontier == 20
    assert len(story.ledger.files(FEED)) == 1


def test_the_outcome_waits_for_a_commit_that_is_still_under_way(
    story: LedgerStory, attempt: Attempt, wires: Wires
) -> None:
    outcome: list[BatchStatus | None] = []
    with wires.to_be_cut(Cut.LATE) as (ledger, proxy):
        with pytest.raises(CommitOutcomeUnknown):
            ledger.commit(attempt)
        asking = threading.Thread(
            target=lambda: outcome.append(story.ledger.take_up(attempt, MINUTE))
        )
        asking.start()
        until_somebody_waits(story)
        assert not outcome, "an answer now would be wrong a moment later"
        proxy.deliver()
        asking.join(20)
    assert outcome == [None], "this very attempt has committed"


def test_a_newer_attempt_waits_for_a_commit_that_is_still_under_way(
    story: LedgerStory, attempt: Attempt, wires: Wires
) -> None:
    taken: list[Attempt | None] = []

    def take_over() -> None:
        taken.append(
            story.ledger.begin_attempt(
                attempt.batch_id, attempt_id=AttemptId("e" * 16), owner=OWNER, lease=MINUTE
            )
        )

    with wires.to_be_cut(Cut.LATE) as (ledger, proxy):
        with pytest.raises(CommitOutcomeUnknown):
            ledger.commit(attempt)
        thread = threading.Thread(target=take_over)
        thread.start()
        until_somebody_waits(story)
        proxy.deliver()
        thread.join(20)
    assert taken == [None], "the batch is over: there is nothing left to land"


@pytest.mark.parametrize(
    "marker", [b"UPDATE batch", b"UPDATE offset_range", b"INSERT INTO file ", b"UPDATE generation"]
)
def test_a_connection_that_dies_before_commit_was_sent_changed_nothing(
    story: LedgerStory, attempt: Attempt, wires: Wires, marker: bytes
) -> None:
    with wires.to_be_cut(Cut.REQUEST, marker=marker) as (ledger, _):
        with pytest.raises(LedgerUnavailable):
            ledger.commit(attempt)
        assert ledger.take_up(attempt, MINUTE)
    assert story.status(attempt.batch_id).state is BatchState.VERIFIED
    assert story.account().frontier == 0


def test_a_plan_whose_answer_was_lost_is_found_by_the_next_try(
    story: LedgerStory, wires: Wires
) -> None:
    story.open({0: (0, 100)})
    batch = story.batch_of((0, 0, 20))
    with wires.to_be_cut(Cut.ANSWER) as (ledger, _):
        with pytest.raises(LedgerUnavailable, match="died at COMMIT"):
            freeze(ledger, batch)
        (left,) = ledger.accounts(FEED).unfinished
    assert left.plan == batch


def freeze(ledger: Ledger, batch: object) -> None:
    with ledger.planning(FEED, TOPIC) as session:
        session.freeze(None, [batch], [], owner=OWNER, lease=MINUTE)  # type: ignore[list-item]


def test_a_connection_that_dies_in_a_plan_is_not_replaced_within_it(
    story: LedgerStory, wires: Wires
) -> None:
    story.open({0: (0, 100)})
    batch = story.batch_of((0, 0, 20))

    def plan(ledger: Ledger, proxy: LedgerProxy) -> None:
        with ledger.planning(FEED, TOPIC) as session:
            proxy.break_all()
            session.freeze(None, [batch], [], owner=OWNER, lease=MINUTE)

    with wires.to_be_cut(Cut.NOWHERE) as (ledger, proxy):
        with pytest.raises(LedgerUnavailable):
            plan(ledger, proxy)
        assert not ledger.accounts(FEED).unfinished


def test_a_connection_that_dies_unnoticed_in_a_plan_loses_no_word(
    story: LedgerStory, wires: Wires
) -> None:
    story.open({0: (0, 100)})

    def plan(ledger: Ledger, proxy: LedgerProxy) -> None:
        with ledger.planning(FEED, TOPIC):
            proxy.break_all()

    with (
        wires.to_be_cut(Cut.NOWHERE) as (ledger, proxy),
        pytest.raises(LedgerUnavailable, match="COMMIT"),
    ):
        plan(ledger, proxy)


def test_a_connection_that_died_between_two_uses_is_replaced(
    story: LedgerStory, wires: Wires
) -> None:
    with wires.to_be_cut(Cut.NOWHERE) as (ledger, proxy):
        proxy.break_all()
        assert not ledger.accounts(FEED).generations


def test_a_server_that_ends_the_session_is_asked_again(
    story: LedgerStory, ledger_server: LedgerServer, ledger_database: str
) -> None:
    story.ledger.findings(FEED)
    ledger_server.execute(
        "postgres",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{ledger_database}'",
    )
    assert not story.ledger.findings(FEED)
