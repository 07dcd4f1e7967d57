"""A log that is cut between any two steps of a batch is noticed: a witness is handed over, never
replaced (invariant 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot, EpochEnd
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import (
    ApplicationFailed,
    BrokerUnavailable,
    SourceChanged,
    VerificationFailed,
)
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out, land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.closing import close_mended
from tallystick.workflows.repairing.repair import begin_repair
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

ONE, TWO, LATER = Owner("one"), Owner("two"), Owner("later")
ATTEMPT = AttemptId("1" * 16)
MINUTE = timedelta(minutes=1)
CUTS = (FindingCode.LOG_CUT,)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition, 50 records, landed."""
    broker = ScriptedBroker("orders", partitions=1)
    story = Story(ledger_databases(), tmp_path, broker)
    broker.logs[0].append(Kind.RECORD, 50)
    land_feed(story.services(), None, ONE)
    return story


def cut_and_grow(story: Story, at: int) -> None:
    """An unclean election: all from the offset on is gone, and producers go on."""
    story.broker.logs[0].cut(at)
    story.broker.logs[0].append(Kind.RECORD, 200, value=b"NEW-LOG-")


def rows_of_another_log(story: Story) -> list[int]:
    """Published offsets whose row is not the record that the log has there now."""
    entries = story.broker.logs[0].entries
    found = []
    for file in sorted((story.directory / "landing" / FEED).rglob("*.parquet")):
        rows = pq.read_table(file, columns=["offset", "value"], partitioning=None).to_pylist()
        found += [row["offset"] for row in rows if entries[row["offset"]].value != row["value"]]
    return sorted(found)


def require_cut_is_told(story: Story, at: int) -> Finding:
    """The next run stops the partition with a loss that begins at the cut, and all say so."""
    land_feed(story.services(), None, LATER)
    report = reconcile(story.services())
    assert report.verdict is Verdict.PROVEN_LOSS
    [found] = [each for each in report.findings if each.code in CUTS]
    assert found.from_offset == at
    [account] = story.services().ledger.accounts(FEED).generations.values()
    assert account.state is GenerationState.STOPPED
    return found


@pytest.mark.parametrize("cut_at", [40, 60])
def test_between_plan_and_land(story: Story, cut_at: int) -> None:
    story.broker.logs[0].append(Kind.RECORD, 50)
    services = story.services(lease=MINUTE)
    [batch] = plan_feed(services, None, TWO).batches
    cut_and_grow(story, cut_at)
    with pytest.raises(SourceChanged, match=f"the log was cut since it was planned, at {cut_at}"):
        land_batch(services, batch.batch_id, ATTEMPT, TWO)
    require_cut_is_told(story, cut_at)
    assert story.published_offsets() == {0: list(range(50))}


@pytest.mark.parametrize("cut_at", [40, 60])
def test_between_the_read_and_the_proof(story: Story, cut_at: int) -> None:
    story.broker.logs[0].append(Kind.RECORD, 50)
    services = story.services(lease=MINUTE)
    [batch] = plan_feed(services, None, TWO).batches
    attempt = land_batch(services, batch.batch_id, ATTEMPT, TWO)
    assert attempt
    cut_and_grow(story, cut_at)
    with pytest.raises(Exception, match=f"the log was cut during the read, at {cut_at}"):
        verify_and_commit(services, attempt)
    require_cut_is_told(story, cut_at)


@pytest.mark.parametrize("cut_at", [40, 60])
def test_between_the_proof_and_the_commit(
    story: Story, cut_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is the log that was planned; the commit leaves its witness as it was."""
    story.broker.logs[0].append(Kind.RECORD, 50)
    services = story.services(lease=MINUTE)
    [batch] = plan_feed(services, None, TWO).batches
    attempt = land_batch(services, batch.batch_id, ATTEMPT, TWO)
    assert attempt
    commit = services.ledger.commit

    def cut_first(*told: Any) -> Any:
        cut_and_grow(story, cut_at)
        return commit(*told)

    monkeypatch.setattr(services.ledger, "commit", cut_first, raising=False)
    verify_and_commit(services, attempt)
    require_cut_is_told(story, cut_at)


def test_between_two_batches_of_one_run(story: Story) -> None:
    story.broker.logs[0].append(Kind.RECORD, 100)
    services = story.services(lease=MINUTE, max_records_per_batch=50)
    first, second = plan_feed(services, None, TWO).batches
    assert carry_out(services, first.batch_id, TWO).directory
    cut_and_grow(story, 30)
    assert isinstance(carry_out(services, second.batch_id, TWO).error, SourceChanged)
    require_cut_is_told(story, 30)
    assert story.published_offsets() == {0: list(range(100))}


def test_between_two_tries_of_a_landing(story: Story) -> None:
    """Try 1 fails while the brokers are down; try 2, of the same plan, comes after the election."""
    story.broker.logs[0].append(Kind.RECORD, 50)
    services = story.services(lease=MINUTE)
    [batch] = plan_feed(services, None, TWO).batches

    class Dead:
        def run(self, order: Any, *, started: Callable[[str], None]) -> None:
            started("application_1")
            raise ApplicationFailed(order.batch_id, "application_1", "TimeoutException")

    dead = replace(services, spark=Dead())  # type: ignore[arg-type]
    with pytest.raises(ApplicationFailed):
        land_batch(dead, batch.batch_id, ATTEMPT, TWO)
    cut_and_grow(story, 40)
    with pytest.raises(SourceChanged, match="the log was cut since it was planned, at 40"):
        land_batch(services, batch.batch_id, AttemptId("2" * 16), TWO)
    require_cut_is_told(story, 40)


def test_between_the_look_of_a_repair_and_its_landing(story: Story) -> None:
    [file] = (story.directory / "landing" / FEED).rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    reconcile(story.services())
    services = story.services(lease=MINUTE)
    begun = begin_repair(services, story.named(), TWO)
    [batch] = begun.batches
    cut_and_grow(story, 40)
    assert isinstance(carry_out(services, batch.batch_id, TWO).error, SourceChanged)
    close_mended(services, [], begun.plan.in_storage, ONE)
    land_feed(story.services(), None, LATER)
    codes = {each.code for each in reconcile(story.services()).findings}
    assert FindingCode.LOG_CUT in codes
    assert file.exists()


def test_before_an_old_plan_is_resumed_without_a_look(story: Story) -> None:
    story.broker.logs[0].append(Kind.RECORD, 50)
    window = Window(datetime(2026, 11, 1, 11, tzinfo=UTC), datetime(2026, 11, 1, 12, tzinfo=UTC))
    plan_feed(story.services(), window, TWO)
    cut_and_grow(story, 40)
    report = land_feed(story.services(), window, Owner("cleared run"))
    assert report.plan.is_resumed
    assert isinstance(report.errors[0], SourceChanged)
    require_cut_is_told(story, 40)
    assert rows_of_another_log(story) == list(range(40, 50))  # landed before the cut, and told


def test_above_what_is_landed_and_below_what_the_plan_had_seen(story: Story) -> None:
    """The batch is right, and is committed; what was cut above it is told all the same."""
    story.broker.logs[0].append(Kind.RECORD, 50)
    services = story.services(lease=MINUTE, max_records_per_run=30)
    [batch] = plan_feed(services, None, TWO).batches
    attempt = land_batch(services, batch.batch_id, ATTEMPT, TWO)
    assert attempt
    cut_and_grow(story, 90)
    assert verify_and_commit(services, attempt)
    found = require_cut_is_told(story, 90)
    assert found.until_offset == 100


class BrokerWithoutEpochs(ScriptedBroker):
    """It tells no leader epoch any more: the last landed record is the only witness."""

    is_silent = False

    def snapshot(self, topic: str) -> BrokerSnapshot:
        seen = super().snapshot(topic)
        if not self.is_silent:
            return seen
        known = seen.partitions.items()
        bare = {number: replace(bounds, leader_epoch=None) for number, bounds in known}
        return replace(seen, partitions=bare)


def test_the_witness_that_another_batch_leaves_during_the_read_back_is_asked(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    """The first batch is committed while the second one is read back, then the log is cut."""
    broker = BrokerWithoutEpochs("orders", partitions=1)
    story = Story(ledger_databases(), tmp_path, broker)
    broker.logs[0].append(Kind.RECORD, 50)
    land_feed(story.services(), None, ONE)
    broker.is_silent = True
    broker.logs[0].append(Kind.RECORD, 100)
    services = story.services(lease=MINUTE, max_records_per_batch=50)
    first, second = plan_feed(services, None, TWO).batches
    earlier = land_batch(services, first.batch_id, ATTEMPT, TWO)
    later = land_batch(services, second.batch_id, AttemptId("2" * 16), TWO)
    assert earlier
    assert later

    def committed_and_cut() -> None:
        verify_and_commit(services, earlier)
        cut_and_grow(story, 60)

    store: Any = Meanwhile(services.store, committed_and_cut, method="read_back")
    with pytest.raises(VerificationFailed, match="the log was cut since it was planned"):
        verify_and_commit(replace(services, store=store), later)


class ForgetfulBroker(ScriptedBroker):
    """Counts the questions for epochs."""

    asked = 0

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, EpochEnd]:
        self.asked += 1
        return super().epoch_ends(topic, epochs)


def test_an_epoch_that_the_broker_has_forgotten_is_no_evidence(story: Story) -> None:
    """Landed up to 50, cut at 30, grown to 230, then expired up to 100."""
    cut_and_grow(story, 30)
    story.broker.logs[0].log_start_offset = 100
    for owner in (TWO, LATER):
        land_feed(story.services(), None, owner)
        report = reconcile(story.services())
        [found] = [each for each in report.findings if each.code is FindingCode.LOG_CUT]
        # It stands although the log's new witness is intact: nobody can answer it any more.
        assert found.verdict is Verdict.UNKNOWN
        assert found.evidence["seen_until"] == 50
    assert story.published_offsets()[0][-1] == 229


def test_an_idle_log_that_has_expired_is_no_doubt_after_a_change_of_leaders(story: Story) -> None:
    log = story.broker.logs[0]
    log.log_start_offset = 50
    log.epoch += 1
    assert not land_feed(story.services(), None, TWO).findings
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


class LaggingBroker(ScriptedBroker):
    """A new leader whose high watermark lags behind its log: the in-sync replicas are too few."""

    lag = 0

    def snapshot(self, topic: str) -> BrokerSnapshot:
        seen = super().snapshot(topic)
        return replace(
            seen,
            partitions={
                number: replace(
                    bounds,
                    high_watermark=bounds.high_watermark - self.lag,
                    last_stable_offset=bounds.last_stable_offset - self.lag,
                )
                for number, bounds in seen.partitions.items()
            },
        )


@pytest.fixture
def lagging(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """50 records landed; 10 more were seen, then another leader's high watermark lags by 12."""
    broker = LaggingBroker("orders", partitions=1)
    broker.logs[0].append(Kind.RECORD, 50)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(), None, ONE)
    broker.logs[0].append(Kind.RECORD, 10)
    reconcile(story.services())
    broker.lag, broker.logs[0].epoch = 12, 1
    return story


def test_a_high_watermark_that_lags_stops_nothing(lagging: Story) -> None:
    assert not land_feed(lagging.services(), None, TWO).findings
    assert reconcile(lagging.services()).verdict is Verdict.PROVEN_OK
    lagging.broker.lag = 0  # type: ignore[attr-defined]
    land_feed(lagging.services(), None, LATER)
    assert lagging.published_offsets() == {0: list(range(60))}
    assert reconcile(lagging.services()).verdict is Verdict.PROVEN_OK


def test_a_plan_waits_for_a_high_watermark_that_lags(lagging: Story) -> None:
    """Planned before the change of leaders, landed during the lag: it is tried again."""
    lagging.broker.lag = 0  # type: ignore[attr-defined]
    services = lagging.services(lease=MINUTE)
    [batch] = plan_feed(services, None, TWO).batches
    lagging.broker.lag = 12  # type: ignore[attr-defined]
    lagging.broker.logs[0].epoch += 1
    with pytest.raises(BrokerUnavailable, match="nothing of it was cut"):
        land_batch(services, batch.batch_id, ATTEMPT, TWO)


def test_a_cut_is_found_behind_a_high_watermark_that_lags(lagging: Story) -> None:
    lagging.broker.logs[0].cut(55)
    lagging.broker.logs[0].append(Kind.RECORD, 2)
    assert require_cut_is_told(lagging, 45).code is FindingCode.LOG_CUT


def test_idle_partitions_are_asked_once_after_a_change_of_leaders(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    broker = ForgetfulBroker("orders", partitions=30)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 2)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(), None, ONE)
    for log in broker.logs.values():
        log.epoch += 1
    broker.asked = 0
    land_feed(story.services(), None, TWO)
    assert broker.asked == 1
    land_feed(story.services(), None, LATER)
    reconcile(story.services())
    assert broker.asked == 1
