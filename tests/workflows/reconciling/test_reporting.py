"""What a report says after runs: proof, trouble, silence; and that no half one is ever kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.batches.paths import page_name
from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.held_back import held_back_by
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BrokerUnavailable, LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling import reporting
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.effects import Countdown, Crash
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")
HOUR = timedelta(hours=1)
OK, LOSS, UNKNOWN = Verdict.PROVEN_OK, Verdict.PROVEN_LOSS, Verdict.UNKNOWN


@dataclass
class Hands:
    """A clock that goes when a test says so."""

    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def pause(self, seconds: float) -> None:
        return None


class TimedBroker(ScriptedBroker):
    """Its snapshots bear the clock's time; it may be silent."""

    hands: Hands
    is_silent = False

    def snapshot(self, topic: str) -> BrokerSnapshot:
        if self.is_silent:
            raise BrokerUnavailable("scripted", "it is down")
        return replace(super().snapshot(topic), taken_at=self.hands.now())


@dataclass
class Feed:
    """A feed whose clock, broker and runs a test moves on."""

    story: Story
    broker: TimedBroker
    hands: Hands

    @property
    def services(self) -> Services:
        return replace(self.story.services(), clock=self.hands)

    def produce(self, *counts: int, kind: Kind = Kind.RECORD) -> None:
        for log, count in zip(self.broker.logs.values(), counts, strict=True):
            if count:
                log.append(kind, count)

    def goes_on(self, hours: float = 1) -> None:
        self.hands.at += HOUR * hours

    def land(self) -> None:
        land_feed(self.services, None, OWNER)

    def report(self) -> ReportDocument:
        services = self.services
        document = reporting.report_of(services, reconcile(services))
        reporting.store_report(services, document)
        return document


@pytest.fixture
def feed(ledger_databases: Callable[[], str], tmp_path: Path) -> Feed:
    broker, hands = TimedBroker("orders"), Hands()
    broker.hands = hands
    return Feed(Story(ledger_databases(), tmp_path, broker), broker, hands)


def cells(document: ReportDocument) -> list[list[Verdict]]:
    return [list(each.verdicts) for each in document.coverage.blocks]


def test_a_feed_that_is_landed_is_complete_up_to_the_reconciles_own_look(feed: Feed) -> None:
    for _ in range(5):
        feed.produce(10, 5)
        feed.land()
        feed.goes_on()

    document = feed.report()

    assert (document.verdict, document.complete_up_to) == (OK, feed.hands.at)
    assert document.held_back_by == ()
    assert {verdict for row in cells(document) for verdict in row} == {OK}
    assert [each.rows for each in document.partitions] == [50, 25]
    assert sum(each.landed_rows for each in document.columns) == 75
    assert [each.produced for each in document.columns] == [None, 15, 15, 15, 15, 0]
    assert [each.landed_offsets for each in document.columns] == [15, 15, 15, 15, 15, 0]
    assert [each.frontier for each in document.band][-1] == 75
    assert document.band[-1].high_watermark == 75


def test_what_came_since_the_last_run_is_grey_and_lags(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    feed.goes_on(5)
    feed.produce(3, 0)

    document = feed.report()

    assert document.complete_up_to == NOW
    assert document.verdict is OK
    assert [each.lag for each in document.partitions] == [3, 0]
    assert [row[-1] for row in cells(document)] == [UNKNOWN, OK]
    assert document.held_back_by == (
        f"orders-0: not all that was there at {feed.hands.at.isoformat()} is landed.",
    )
    assert document.partitions[0].complete_up_to == NOW
    assert document.partitions[1].complete_up_to == feed.hands.at


def test_a_lost_file_is_red_where_its_offsets_came_and_holds_back(feed: Feed) -> None:
    for _ in range(6):
        feed.produce(10, 5)
        feed.land()
        feed.goes_on()
    directories = sorted((feed.story.directory / "landing" / FEED).rglob("batch=*"))
    for each in directories[:1]:
        shutil.rmtree(each)

    document = feed.report()

    assert document.verdict is LOSS
    assert document.complete_up_to is None
    assert {each.code for each in document.findings} == {"A8"}
    assert all(each.number is not None for each in document.findings)
    red = [row for row in cells(document) if LOSS in row]
    assert red
    assert all(row.count(LOSS) == 1 for row in red)
    numbers = {each.partition: each.number for each in document.findings}
    assert document.held_back_by[0] == (
        f"orders-0 [0, 10): A8 PROVEN_LOSS, finding {numbers[0]}: tallystick explain {numbers[0]}"
    )


def test_the_worst_reason_is_named_first_with_its_number(feed: Feed) -> None:
    """A stray file is a suspicion about the feed; what it doubles is proven, of a partition."""
    feed.produce(10, 5)
    feed.land()
    feed.goes_on()
    [file] = (feed.story.directory / "landing" / FEED).rglob("*.parquet")
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())

    document = feed.report()

    numbers = {(each.code, each.partition): each.number for each in document.findings}
    expected = [
        ("orders-0 [0, 10): B2 PROVEN_DUP", numbers["B2", 0]),
        ("orders-1 [0, 5): B2 PROVEN_DUP", numbers["B2", 1]),
        ("orders: A9 SUSPECTED", numbers["A9", None]),
    ]
    assert document.held_back_by == tuple(
        f"{said}, finding {number}: tallystick explain {number}" for said, number in expected
    )
    complete = reporting.feed_completeness(feed.services.ledger, FEED)
    assert document.held_back_by == held_back_by(
        "orders", complete.proven, feed.hands.at, complete.numbers
    )


def test_a_waived_finding_is_waived_everywhere(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    feed.goes_on(4)
    for each in sorted((feed.story.directory / "landing" / FEED).rglob("batch=*")):
        shutil.rmtree(each)
    assert feed.report().complete_up_to is None
    with psycopg.connect(feed.story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("UPDATE finding SET state = 'waived'")
        hand.execute(
            "INSERT INTO waiver (finding_id, evidence_sha256, reason, asked_by, approved_by,"
            " expires_at) SELECT finding_id, sha256(convert_to(evidence::text, 'UTF8')), 'known',"
            " 'ada', 'grace', now() + interval '1 year' FROM finding"
        )

    complete = reporting.feed_completeness(feed.services.ledger, FEED)

    assert complete.proven.up_to == feed.hands.at


def test_with_a_silent_broker_nothing_is_said_of_today(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    feed.goes_on(5)
    feed.broker.is_silent = True

    document = feed.report()

    assert document.verdict is UNKNOWN
    assert not document.is_complete
    assert document.complete_up_to == NOW, "what the run's look proved then, and nothing newer"
    assert document.held_back_by[0] == "orders-0: nobody has looked at it since."
    assert "the broker could not be asked" in document.unheard[0]
    assert {verdict for row in cells(document) for verdict in row} == {UNKNOWN}
    part = document.partitions[0]
    assert (part.log_start_offset, part.high_watermark, part.lag) == (None, None, None)
    assert part.checked_at["L1"] is None


def test_a_feed_that_was_never_planned_has_a_report_that_knows_nothing(feed: Feed) -> None:
    feed.produce(10, 5)

    document = feed.report()

    assert document.verdict is UNKNOWN
    assert (document.complete_up_to, document.partitions) == (None, ())
    assert document.coverage.edges == ()


def test_time_to_loss_is_counted_from_the_oldest_record_that_waits(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    feed.goes_on(5)
    feed.produce(3, 0)

    first, second = feed.report().partitions
    retention_ms = feed.broker.snapshot("orders").retention_ms

    assert second.seconds_to_loss is None
    expected = None if retention_ms is None else retention_ms / 1000 - 5 * 3600
    assert first.seconds_to_loss == expected


def test_a_report_comes_back_as_it_was_stored(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    feed.goes_on()
    documents = []
    for _ in range(3):
        documents.append(feed.report())
        feed.goes_on()

    ledger = feed.services.ledger

    assert ledger.report_at(FEED, None) == documents[2]
    assert ledger.report_at(FEED, documents[1].taken_at) == documents[1]


def test_a_reconcile_that_dies_leaves_no_report(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    countdown = Countdown(at=0)
    services = replace(feed.story.services(countdown), clock=feed.hands)

    with pytest.raises(Crash):
        reconcile(services)

    assert feed.services.ledger.report_at(FEED, None) is None


def test_a_report_without_its_ledger_is_an_error_that_names_the_step(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    services = feed.services
    found = reconcile(services)
    gone = feed.story.dsn.replace("127.0.0.1", "127.0.0.2")
    lost = replace(
        services, ledger=Story(gone, feed.story.directory, feed.broker).services().ledger
    )

    with pytest.raises(LedgerUnavailable) as caught:
        reporting.report_of(lost, found)

    assert "at report" in str(caught.value)


def test_a_range_that_somebody_has_deleted_is_missed(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    with psycopg.connect(feed.story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE offset_range DISABLE TRIGGER USER")
        hand.execute("DELETE FROM offset_range WHERE offsets @> 0::bigint")

    part = feed.report().partitions[0]

    assert (part.gap_offsets, part.rows) == (10, 0)


def test_holes_and_rows_are_of_all_generations(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.produce(2, 0, kind=Kind.CONTROL)
    feed.land()
    feed.goes_on()
    feed.broker.recreate()
    feed.produce(4, 0)
    feed.land()
    feed.goes_on()

    document = feed.report()

    part = document.partitions[0]
    assert (part.generation, part.rows, part.holes["control"]) == (2, 14, 2)
    assert document.band[0].frontier is None
    assert document.band[-1].frontier is not None
    looks = Ledger(feed.story.dsn).look_places(FEED)
    assert len(document.band) == len(looks), "the frontier moves between columns, too"


def test_the_pages_of_old_reports_go_with_the_reports(feed: Feed) -> None:
    feed.produce(10, 5)
    feed.land()
    report = feed.report()
    pages = feed.story.directory / "landing" / "_reports" / FEED
    pages.mkdir(parents=True)
    days = [report.taken_at - timedelta(days=60), report.taken_at - timedelta(days=1)]
    hours = [day.replace(hour=hour) for day in days for hour in (1, 2, 3)]
    reporting.store_report(feed.services, replace(report, taken_at=hours[1]))
    for each in hours:
        (pages / page_name(each)).write_text("a page")

    path = reporting.store_page(feed.services, report.taken_at, "the newest")

    # The first one of the old day is in no ledger; the second one is, and the third is the last.
    kept = [*hours[1:], report.taken_at]
    assert sorted(each.name for each in pages.iterdir()) == sorted(map(page_name, kept))
    assert feed.services.store.read(path) == b"the newest"
