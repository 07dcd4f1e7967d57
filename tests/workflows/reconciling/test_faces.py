"""No face says more than was heard: verdict, lag, time to loss and "complete" of one feed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.identities import Owner
from tallystick.domain.report.completeness import Completeness
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BrokerUnavailable
from tallystick.ledger.overview import FeedHead
from tallystick.orchestration.complete_sensor import ask
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of, store_report
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import NOW, Kind, Log, MinuteByMinute
from tests.support.silent_store import SilentStore
from tests.support.story import FEED, Story
from tests.support.waivers import accept

OK, UNKNOWN = Verdict.PROVEN_OK, Verdict.UNKNOWN
WEEK = timedelta(days=7)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed; the broker keeps each for a week."""
    broker = MinuteByMinute("orders")
    broker.retention_ms = WEEK // timedelta(milliseconds=1)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(services_of(story), None, Owner("one"))
    return story


def services_of(story: Story) -> Services:
    assert isinstance(story.broker, MinuteByMinute)
    return replace(story.services(), clock=story.broker)


def reported(services: Services, level: Level = Level.L2) -> ReportDocument:
    document = report_of(services, reconcile(services, level))
    store_report(services, document)
    return document


def head(story: Story) -> FeedHead:
    [found] = services_of(story).ledger.feed_heads(FEED, most_runs=0)
    return found


def proven(story: Story) -> Completeness:
    return feed_completeness(services_of(story).ledger, FEED).proven


class SilentReader:
    """A second reader whose brokers are away."""

    def read(self, *_: object, **__: object) -> Any:
        raise BrokerUnavailable("scripted", "no broker answers the second reader")


def with_silence(services: Services, level: Level) -> Services:
    if level is Level.L4:
        return replace(services, second_reader=SilentReader())  # type: ignore[arg-type]
    return replace(services, store=SilentStore(services.store))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("silent", "others"), [(Level.L2, [Level.L1]), (Level.L4, [Level.L1, Level.L2])]
)
def test_only_who_asks_again_takes_back_what_could_not_be_told(
    story: Story, silent: Level, others: list[Level]
) -> None:
    assert reported(with_silence(services_of(story), silent), silent).verdict is UNKNOWN
    assert head(story).verdict is UNKNOWN
    for level in others:
        assert reported(services_of(story), level).verdict is OK
        assert head(story).verdict is UNKNOWN
    reported(services_of(story), silent)
    assert head(story).verdict is OK


def test_the_verdict_follows_a_cure_at_once(story: Story) -> None:
    reported(services_of(story))
    [manifest] = (story.directory / "landing" / FEED).rglob(MANIFEST_NAME)
    manifest.unlink()
    assert reported(services_of(story)).verdict is UNKNOWN
    assert head(story).verdict is UNKNOWN

    repair_feed(services_of(story), (), Owner("cure"))

    assert head(story).report.verdict is UNKNOWN  # type: ignore[union-attr]
    assert head(story).verdict is OK


def test_a_log_with_nothing_landed_is_unknown_until_it_has_landed(story: Story) -> None:
    reported(services_of(story))
    story.broker.logs[2] = Log()
    story.broker.logs[2].append(Kind.RECORD, 3)
    plan_feed(services_of(story), None, Owner("two"))
    assert head(story).verdict is UNKNOWN

    land_feed(services_of(story), None, Owner("two"))

    assert head(story).verdict is OK


def test_no_look_proves_anything_while_storage_is_silent(story: Story) -> None:
    reported(services_of(story))
    before = proven(story)
    assert before.up_to == before.newest_look_at
    reported(with_silence(services_of(story), Level.L2))
    land_feed(services_of(story), None, Owner("two"))
    reported(services_of(story), Level.L1)

    assert proven(story).up_to == before.up_to
    assert "storage is silent since" in str(ask(services_of(story).ledger, FEED, NOW + WEEK))
    reported(services_of(story))
    found = proven(story)
    assert found.up_to == found.newest_look_at


def test_no_look_proves_anything_after_storage_should_have_been_asked(story: Story) -> None:
    before = proven(story)
    story.broker.minutes += 2 * 24 * 60  # type: ignore[attr-defined]
    land_feed(services_of(story), None, Owner("two"))

    assert proven(story).up_to == before.up_to
    reported(services_of(story))
    found = proven(story)
    assert found.up_to == found.newest_look_at


def test_a_log_that_was_cut_does_not_hide_the_lag_of_others(story: Story) -> None:
    story.broker.logs[0].cut(4)
    story.broker.logs[0].append(Kind.RECORD, 2)
    story.broker.logs[1].append(Kind.RECORD, 3)
    reported(services_of(story))

    assert head(story).lag == 3


@pytest.mark.parametrize("by", ["age", "size"])
def test_every_face_has_the_time_to_loss_that_counts_by_record_times_and_sizes(
    story: Story, by: str
) -> None:
    at = NOW + timedelta(minutes=10) - WEEK if by == "age" else NOW
    story.broker.logs[0].append(Kind.RECORD, 10, at=at)
    story.broker.retention_bytes = 100 if by == "size" else None
    document = reported(services_of(story))

    left, other = (each.seconds_to_loss for each in document.partitions)
    assert other is None
    assert left is not None
    assert left <= 600
    assert document.seconds_to_loss == left
    assert head(story).seconds_to_loss(document.taken_at) == max(0, left)
    [told] = [each for each in document.findings if each.code == FindingCode.LOSS_NEAR.value]
    assert told.evidence["seconds"] == round(left)


def test_who_waits_for_proof_is_told_what_is_accepted_as_lost(story: Story) -> None:
    story.broker.logs[0].append(Kind.RECORD, 10)
    story.broker.logs[0].log_start_offset = 20
    land_feed(services_of(story), None, Owner("two"))
    ledger = services_of(story).ledger
    [lost] = ledger.findings(FEED)
    accept(ledger, lost.finding_id)

    answer = ask(ledger, FEED, NOW)

    assert answer.is_proven
    assert "landed, or accepted as lost: orders-0 [10, 20) until" in str(answer)
    assert "storage was heard last: never" in str(answer)


def test_an_instant_before_the_feed_began_is_not_its_own(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    broker = MinuteByMinute("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10, at=NOW - timedelta(days=1))
    story = Story(ledger_databases(), tmp_path, broker)
    services = services_of(story)
    source = services.feed.source.model_copy(update={"start": "latest"})
    feed = services.feed.model_copy(update={"source": source})
    land_feed(replace(services, feed=feed), None, Owner("one"))

    told = ask(services.ledger, FEED, NOW - timedelta(hours=1))

    assert not told.is_proven
    assert "before the feed's first look" in str(told)
    assert ask(services.ledger, FEED, proven(story).newest_look_at or datetime.now(UTC)).is_proven
