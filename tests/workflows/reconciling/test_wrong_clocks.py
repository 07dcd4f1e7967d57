"""A machine whose clock is wrong, once: it proves nothing, hides nothing, and is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.report.completeness import Completeness, Proof
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of, store_report
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")
MINUTE, DAYS = timedelta(minutes=1), timedelta(days=2)


@dataclass
class Skewed:
    """A machine's clock, so much ahead of the true time."""

    ahead: timedelta = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def pause(self, seconds: float) -> None:
        return None


class AskedBy(ScriptedBroker):
    """Its snapshots bear the time of the machine that asks."""

    asker = Skewed()

    def snapshot(self, topic: str) -> BrokerSnapshot:
        return replace(super().snapshot(topic), taken_at=self.asker.now())


@dataclass
class Machines:
    """One feed, and machines with clocks of their own that run it."""

    story: Story
    broker: AskedBy

    def on(self, ahead: timedelta = timedelta(0)) -> Services:
        self.broker.asker = Skewed(ahead)
        return replace(self.story.services(), clock=self.broker.asker)

    def land(self, ahead: timedelta = timedelta(0), count: int = 10) -> None:
        self.broker.logs[0].append(Kind.RECORD, count, at=datetime.now(UTC))
        assert not land_feed(self.on(ahead), None, OWNER).errors

    def report(self, ahead: timedelta = timedelta(0)) -> ReportDocument:
        services = self.on(ahead)
        document = report_of(services, reconcile(services))
        store_report(services, document)
        return document

    @property
    def proven(self) -> Completeness:
        return feed_completeness(self.story.services().ledger, FEED).proven


@pytest.fixture
def machines(ledger_databases: Callable[[], str], tmp_path: Path) -> Machines:
    broker = AskedBy("orders", partitions=1)
    return Machines(Story(ledger_databases(), tmp_path, broker), broker)


@pytest.mark.parametrize("ahead", [DAYS, -DAYS, MINUTE / 2], ids=["ahead", "behind", "a little"])
def test_a_plan_on_a_machine_with_a_wrong_clock_proves_nothing_of_what_comes_later(
    machines: Machines, ahead: timedelta
) -> None:
    machines.land()
    machines.land(ahead)
    landed_at = datetime.now(UTC)
    machines.broker.logs[0].append(Kind.RECORD, 1000)

    machines.report()

    proven = machines.proven
    assert proven.up_to is not None
    assert proven.up_to <= landed_at
    assert proven.proof_of(datetime.now(UTC)) is Proof.NOT_PROVEN
    assert proven.newest_look_at is not None
    assert proven.newest_look_at > landed_at, "looks come in the order in which they were taken"


def test_a_look_of_a_machine_whose_clock_is_ahead_proves_nothing_and_says_so(
    machines: Machines,
) -> None:
    machines.land()
    proven_before = machines.proven.up_to
    machines.land(DAYS)

    document = machines.report(DAYS)

    assert document.verdict is Verdict.PROVEN_OK
    assert document.taken_at <= datetime.now(UTC)
    assert document.complete_up_to == machines.proven.up_to == proven_before
    [reason] = document.held_back_by
    told = re.search(
        r"the clock of the machine that asked the broker was (\d+) s ahead of the ledger's", reason
    )
    assert told
    # What passes between the two clocks' readings counts, too.
    assert abs(int(told[1]) - DAYS.total_seconds()) < 60
    assert machines.report().complete_up_to == machines.proven.newest_look_at


def test_clocks_that_differ_a_little_hold_nothing_back(machines: Machines) -> None:
    machines.land(MINUTE / 2)

    document = machines.report(MINUTE / 2)

    assert document.complete_up_to == machines.proven.newest_look_at
    assert document.complete_up_to is not None
    assert document.complete_up_to <= datetime.now(UTC)


@pytest.mark.parametrize("ahead", [DAYS, -DAYS], ids=["ahead", "behind"])
def test_the_newest_report_is_the_one_that_was_kept_last(
    machines: Machines, ahead: timedelta
) -> None:
    machines.land()
    first, second = (ahead, timedelta(0)) if ahead > timedelta(0) else (timedelta(0), ahead)
    machines.report(first)
    [file] = (machines.story.directory / "landing" / FEED).rglob("*.parquet")
    file.unlink()

    told = machines.report(second)

    ledger = machines.story.services().ledger
    assert told.verdict is Verdict.PROVEN_LOSS
    assert ledger.report_at(FEED, None) == told
    assert ledger.report_at(FEED, datetime.now(UTC)) == told


def test_a_machine_whose_clock_is_ahead_sees_no_loss_near(machines: Machines) -> None:
    """A record of now, kept for a week, is not near its end on a Thursday of next week."""
    machines.broker.retention_ms = int(timedelta(days=7) / timedelta(milliseconds=1))
    machines.land()
    machines.broker.logs[0].append(Kind.RECORD, 10, at=datetime.now(UTC))

    report = reconcile(machines.on(timedelta(days=7)))

    assert report.findings == ()


def test_a_transaction_that_just_began_is_not_called_hung_by_a_fast_clock(
    machines: Machines,
) -> None:
    machines.land()
    machines.broker.logs[0].append(Kind.RECORD, 1)
    machines.broker.logs[0].open(5)
    reconcile(machines.on())
    machines.broker.logs[0].append(Kind.RECORD, 5)

    reconcile(machines.on(DAYS))

    assert not of_code(machines, FindingCode.STALLED_STABLE_OFFSET)


def of_code(machines: Machines, code: FindingCode) -> list[StoredFinding]:
    standing = machines.story.services().ledger.findings(FEED)
    return [each for each in standing if each.finding.code is code]
