"""Reconcile while a witness goes away: at whatever call, UNKNOWN with the reason, never a loss."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.c2_aborted_landed import aborted_landed
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import (
    BrokerUnavailable,
    IngestionError,
    LedgerUnavailable,
    SourceRefused,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.builders import a_manifest
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two landed batches, and something unread in a log that is bounded and transactional."""
    broker = ScriptedBroker("orders")
    broker.retention_ms = 604_800_000
    story = Story(ledger_databases(), tmp_path, broker)
    for _ in range(2):
        for log in broker.logs.values():
            log.append(Kind.RECORD, 10)
            log.append(Kind.CONTROL, 1)
        land_feed(story.services(), None, OWNER)
    broker.logs[0].append(Kind.RECORD, 3)
    return story


class Fails:
    """A port whose call of one number fails, and all later ones too if it stays away."""

    def __init__(
        self, port: Any, error: IngestionError, call: int, *, for_good: bool = True
    ) -> None:
        self._port, self._error, self._for_good = port, error, for_good
        self._call, self.calls = call, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._failing(found) if callable(found) else found

    def _failing(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self._call or (self._for_good and self.calls > self._call):
                raise self._error
            return call(*args, **kwargs)

        return failing


DOWN = BrokerUnavailable("one:9092", "it is restarting")


def told(findings: Iterable[Finding]) -> set[tuple[str, Verdict]]:
    return {(each.code.value, each.verdict) for each in findings}


def with_broker(story: Story, call: int, *, for_good: bool) -> tuple[ReconcileReport, Fails]:
    services = story.services()
    broker = Fails(services.broker, DOWN, call, for_good=for_good)
    return reconcile(replace(services, broker=broker)), broker  # type: ignore[arg-type]


def test_a_sound_feed_is_proven(story: Story) -> None:
    report = reconcile(story.services())
    assert (report.findings, report.verdict) == ((), Verdict.PROVEN_OK)


@pytest.mark.parametrize("for_good", [True, False], ids=["stays away", "is back at once"])
def test_a_broker_that_goes_away_at_any_question_is_unknown(story: Story, for_good: bool) -> None:
    for call in count(1):
        report, broker = with_broker(story, call, for_good=for_good)
        if broker.calls < call:
            break
        assert told(report.findings) == {("U1", Verdict.UNKNOWN)}, call
        assert "it is restarting" in report.findings[0].cause
        assert not report.is_complete
        assert report.verdict is Verdict.UNKNOWN
    assert call > 4


def test_what_storage_shows_is_told_while_the_broker_is_silent(story: Story) -> None:
    file = min((story.directory / "landing" / FEED).rglob("*.parquet"))
    file.unlink()
    report, _ = with_broker(story, 1, for_good=True)
    assert told(report.findings) == {("U1", Verdict.UNKNOWN), ("A8", Verdict.PROVEN_LOSS)}


def near_its_end(story: Story) -> None:
    """What is unread was produced almost a retention ago."""
    story.broker.retention_ms = 24 * 3_600_000
    old = ScriptedBroker("orders").logs[0]
    old.append(Kind.RECORD, 3, at=NOW - timedelta(hours=23))
    story.broker.logs[0].entries[-3:] = old.entries


def test_a_broker_that_is_not_there_closes_nothing(story: Story) -> None:
    near_its_end(story)
    assert told(reconcile(story.services()).findings) == {("W1", Verdict.SUSPECTED)}
    with_broker(story, 1, for_good=True)
    standing = [each.finding.code.value for each in story.services().ledger.findings(FEED)]
    assert standing == ["W1"]


class Lagging(ScriptedBroker):
    """Right after a restart its first answers end earlier than the log."""

    def __init__(self, broker: ScriptedBroker, answers: int) -> None:
        super().__init__(broker.topic)
        self.__dict__.update(broker.__dict__)
        self._answers = answers

    def snapshot(self, topic: str) -> BrokerSnapshot:
        snapshot = super().snapshot(topic)
        self._answers -= 1
        if self._answers < 0:
            return snapshot
        behind = {
            number: replace(bounds, high_watermark=9, last_stable_offset=9)
            for number, bounds in snapshot.partitions.items()
        }
        return replace(snapshot, partitions=behind)


@pytest.mark.parametrize("answers", [1, 2, 3])
def test_a_broker_that_catches_up_after_its_restart_has_cut_nothing(
    story: Story, answers: int
) -> None:
    services = replace(story.services(), broker=Lagging(story.broker, answers))
    assert reconcile(services).findings == ()


def with_store(story: Story, error: IngestionError, call: int) -> tuple[ReconcileReport, Fails]:
    services = story.services()
    store = Fails(services.store, error, call, for_good=not isinstance(error, StorageRefused))
    return reconcile(replace(services, store=store)), store  # type: ignore[arg-type]


def test_a_storage_that_goes_away_at_any_question_is_unknown(story: Story) -> None:
    error = StorageUnavailable("/landing", "in safe mode")
    for call in count(1):
        report, store = with_store(story, error, call)
        if store.calls < call:
            break
        assert told(report.findings) == {("U1", Verdict.UNKNOWN)}, call
        assert not report.is_complete
    assert call > 4
    assert reconcile(story.services()).findings == ()


def test_a_refusal_at_any_question_is_unknown_or_asked_again_later(story: Story) -> None:
    error = StorageRefused("/landing", "no permission")
    refused = 0
    for call in count(1):
        report, store = with_store(story, error, call)
        if store.calls < call:
            break
        # A batch whose rows can't be read again this time stays due: nothing is said of it.
        assert told(report.findings) <= {("U1", Verdict.UNKNOWN)}, call
        assert report.is_complete is not bool(report.findings)
        refused += bool(report.findings)
    assert refused > 4
    assert reconcile(story.services()).findings == ()


def test_a_ledger_that_goes_away_at_any_question_leaves_nothing_half_said(story: Story) -> None:
    for call in count(1):
        services = story.services()
        ledger = Fails(services.ledger, LedgerUnavailable("the server is gone"), call)
        try:
            reconcile(replace(services, ledger=ledger))  # type: ignore[arg-type]
        except LedgerUnavailable:
            assert story.services().ledger.findings(FEED) == [], call
        else:
            break
    assert ledger.calls < call
    assert call > 10
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_what_stands_on_record_is_told_until_somebody_looks_for_it_again(story: Story) -> None:
    services = story.services()
    aborted = OffsetRuns.of([(2, 4)])
    [old] = aborted_landed(a_manifest().plan, "gone.parquet", 0, aborted, aborted)
    services.ledger.record_findings(FEED, [old])
    for _ in range(2):
        report = reconcile(story.services())
        assert told(report.findings) == {("C2", Verdict.PROVEN_DUP)}
        assert report.is_complete
    [partition, other] = report.partitions
    assert (partition.verdict, other.verdict) == (Verdict.PROVEN_DUP, Verdict.PROVEN_OK)


def test_what_the_broker_showed_stands_while_it_is_silent(story: Story) -> None:
    near_its_end(story)
    reconcile(story.services())
    report, _ = with_broker(story, 1, for_good=True)
    assert told(report.findings) == {("U1", Verdict.UNKNOWN), ("W1", Verdict.SUSPECTED)}


def test_a_partition_that_loses_its_leader_ends_no_finding_about_it(story: Story) -> None:
    near_its_end(story)
    reconcile(story.services())
    ledger = story.services().ledger
    (near,) = [each for each in ledger.findings(FEED) if each.finding.code.value == "W1"]
    story.broker.leaderless.add(0)
    reconcile(story.services())
    stored = ledger.finding(near.finding_id)
    assert stored
    assert stored.state is FindingState.OPEN
    story.broker.leaderless.clear()
    land_feed(story.services(), None, OWNER)
    assert reconcile(story.services()).findings == ()


def test_batch_headers_that_can_not_be_read_end_no_warning_of_a_loss(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    near_its_end(story)
    reconcile(story.services())
    ledger = story.services().ledger
    (near,) = [each for each in ledger.findings(FEED) if each.finding.code.value == "W1"]

    def damaged(topic: str, offsets: object) -> object:
        raise SourceRefused(f"the batches of {topic}", "a damaged batch")

    with monkeypatch.context() as broken:
        broken.setattr(story.broker, "batch_heads", damaged)
        assert told(reconcile(story.services()).findings) == {("W1", Verdict.SUSPECTED)}
    stored = ledger.finding(near.finding_id)
    assert stored
    assert stored.state is FindingState.OPEN
    land_feed(story.services(), None, OWNER)
    assert reconcile(story.services()).findings == ()
