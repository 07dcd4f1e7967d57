"""What a clever world does to a feed, and what must hold all the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.rules.findings import FAILING_VERDICTS, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import AnotherCluster, BrokerUnavailable, SourceRefused
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.checking import failure
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of, store_report
from tallystick.workflows.services import Services
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, FixedClock, Story
from tests.support.waivers import accept

OWNER, OTHER = Owner("one"), Owner("other")
FIRST = AttemptId("1" * 16)
LONG = timedelta(seconds=60)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


class Later(FixedClock):
    """Three days later."""

    def now(self) -> datetime:
        return NOW + timedelta(days=3)


class Afterwards:
    """A port; once, after the first call of a method, something else happens in the world."""

    def __init__(self, port: Any, **then: Callable[[], object]) -> None:
        self._port, self._then = port, then

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name not in self._then:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            answer = found(*args, **kwargs)
            self._then.pop(name, lambda: None)()
            return answer

        return call


def elsewhere(services: Services) -> Services:
    """The same feed after somebody has edited its target."""
    target = services.feed.target.model_copy(update={"root": "/elsewhere"})
    return replace(services, feed=services.feed.model_copy(update={"target": target}))


def test_a_sick_partition_fails_alone(story: Story) -> None:
    story.broker.logs[0].entries[4].kind = Kind.COMPACTED
    story.broker.explain_holes = lambda *args, **more: {}  # type: ignore[method-assign]
    for _ in range(3):
        land_feed(story.services(), None, OWNER)
    assert story.published_offsets() == {1: list(range(10))}
    [error] = land_feed(story.services(), None, OWNER).errors
    assert "orders-0 [0, 10)" in str(error)


def test_a_window_whose_batch_fails_is_taken_apart_too(story: Story) -> None:
    window = Window(NOW.replace(minute=0), NOW.replace(minute=0) + timedelta(hours=1))
    story.broker.logs[0].entries[4].kind = Kind.COMPACTED
    story.broker.explain_holes = lambda *args, **more: {}  # type: ignore[method-assign]
    for _ in range(3):
        land_feed(story.services(), window, OWNER)
    assert story.published_offsets() == {1: list(range(10))}


def test_a_life_that_is_over_is_never_landed_again(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    first_life = story.broker.logs
    story.broker.recreate(partitions=1)
    land_feed(story.services(), None, OWNER)
    story.broker.logs, story.broker.topic_id = first_life, "topic-id-1"
    with pytest.raises(BrokerUnavailable, match=r"topic-id-1 .* was deleted and re-created since"):
        land_feed(story.services(), None, OWNER)
    assert story.published_offsets()[0] == list(range(10))


def test_another_cluster_is_refused_before_anything_changes(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    snapshot = story.broker.snapshot
    story.broker.snapshot = lambda topic: replace(  # type: ignore[method-assign]
        snapshot(topic), cluster_id="cluster-2"
    )
    with pytest.raises(AnotherCluster, match=r"lands from cluster cluster-1, but .*cluster-2"):
        land_feed(story.services(), None, OWNER)
    story.broker.snapshot = snapshot  # type: ignore[method-assign]
    assert land_feed(story.services(), None, OWNER).findings == []


def test_a_cut_behind_a_tail_of_holes_is_noticed(story: Story) -> None:
    story.broker.logs[0].append(Kind.ABORTED, 10)
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].cut(12)
    story.broker.logs[0].append(Kind.RECORD, 20, value=b"others")
    findings = land_feed(story.services(), None, OWNER).findings
    assert [each.code for each in findings] == [FindingCode.LOG_CUT]
    assert reconcile(story.services()).verdict is Verdict.PROVEN_LOSS


def test_a_reconcile_that_is_overdue_is_told_by_runs_until_one_lists_all_files(
    story: Story,
) -> None:
    land_feed(story.services(), None, OWNER)
    services = replace(story.services(), clock=Later())

    for _ in range(2):
        [told] = land_feed(services, None, OWNER).findings
        assert (told.code, told.name) == (FindingCode.OVERDUE, "no reconcile")
    assert feed_completeness(services.ledger, FEED).proven.up_to is not None

    report = reconcile(services)
    store_report(services, report_of(services, report))
    assert (report.findings, services.ledger.findings(FEED)) == ((), [])
    assert land_feed(services, None, OWNER).findings == []


def test_what_two_people_have_accepted_fails_no_run(
    story: Story,
) -> None:
    log = story.broker.logs[0]
    land_feed(story.services(), None, OWNER)
    log.cut(7)
    land_feed(story.services(), None, OWNER)
    ledger = story.services().ledger
    [cut] = [each for each in ledger.findings(FEED) if each.finding.code is FindingCode.LOG_CUT]
    accept(ledger, cut.finding_id)

    [told] = land_feed(story.services(), None, OWNER).findings
    assert (told.code, told.verdict) == (FindingCode.LOG_CUT, Verdict.WAIVED)
    assert failure(FEED, [told], []) is None


def test_a_log_that_is_cut_in_the_middle_of_the_read_commits_nothing(story: Story) -> None:
    log, visible = story.broker.logs[0], story.broker.visible

    def torn(offsets: Any, isolation: Any) -> Any:
        before = visible(offsets, isolation)
        if offsets.partition.partition:
            return before
        log.cut(3)
        log.append(Kind.RECORD, 20, value=b"others")
        return before[:6] + visible(offsets, isolation)[6:]

    story.broker.visible = torn  # type: ignore[method-assign]
    [error] = land_feed(story.services(), None, OWNER).errors
    assert "orders-0 [0, 10): the log was cut during the read" in str(error)
    assert story.published_offsets() == {}


def test_a_clean_change_of_leaders_is_no_alarm(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].epoch += 1
    story.broker.logs[0].append(Kind.RECORD, 5)
    assert land_feed(story.services(), None, OWNER).findings == []
    story.broker.logs[0].epoch += 1
    assert land_feed(story.services(), None, OWNER).findings == []
    assert story.published_offsets()[0] == list(range(15))


def test_a_feed_that_lands_elsewhere_from_now_on_loses_nothing(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 5)
    land_feed(elsewhere(story.services()), None, OWNER)
    assert reconcile(elsewhere(story.services())).findings == ()
    assert list((story.directory / "elsewhere" / "orders").rglob("*.parquet"))


def test_a_batch_is_published_where_it_was_planned(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch, FIRST, OWNER)
    assert attempt
    verify_and_commit(elsewhere(services), attempt)
    publish(elsewhere(services), batch)
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_staging_is_swept_where_it_was_written(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, OWNER).batches[0].batch_id
    land_batch(services, batch, FIRST, OWNER)
    land_feed(elsewhere(story.services()), None, OWNER)
    assert story.staged() == []


def test_a_window_run_again_gets_over_an_expired_claim(story: Story) -> None:
    window = Window(NOW.replace(minute=0), NOW.replace(minute=0) + timedelta(hours=1))
    plan_feed(story.services(), window, OWNER)
    story.broker.logs[0].log_start_offset = 4
    for _ in range(3):
        report = land_feed(story.services(), window, OTHER)
    assert not report.errors
    assert story.published_offsets() == {0: list(range(4, 10)), 1: list(range(10))}
    lost = story.services().ledger.lost(FEED)
    assert [(each.from_offset, each.until_offset) for _, each, _ in lost] == [(0, 4)]


def test_recreated_between_snapshot_and_anchor_is_not_overwritten(story: Story) -> None:
    land_feed(story.services(), None, OWNER)

    def recreate() -> None:
        story.broker.recreate()
        for log in story.broker.logs.values():
            log.append(Kind.RECORD, 30, value=b"second life")

    services = replace(story.services(), broker=Afterwards(story.broker, snapshot=recreate))
    findings = land_feed(services, None, OWNER).findings
    assert {each.code for each in findings} == {FindingCode.TOPIC_RECREATED}


def test_what_was_read_in_time_waits_for_its_verification(story: Story) -> None:
    services = story.services(lease=LONG)
    batch = plan_feed(services, None, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch, FIRST, OWNER)
    assert attempt
    assert services.ledger.batch(batch).lease_seconds_left > LONG.total_seconds() * 9
    story.broker.logs[0].log_start_offset = 10
    assert plan_feed(story.services(lease=LONG), None, OTHER).findings == ()
    verify_and_commit(services, attempt)
    publish(services, batch)
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_a_cut_that_lost_its_race_is_no_loss(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch, FIRST, OWNER)
    assert attempt
    story.broker.logs[0].log_start_offset = 10
    commit = Afterwards(story.broker, snapshot=lambda: verify_and_commit(services, attempt))
    findings = land_feed(replace(story.services(), broker=commit), None, OTHER).findings
    assert not [each for each in findings if each.verdict in FAILING_VERDICTS]
    assert story.services().ledger.lost(services.feed_name) == []


def test_a_partition_without_a_leader_holds_up_nobody_and_is_told(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    story.broker.leaderless = {0}
    report = land_feed(story.services(), None, OWNER)
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(15))}
    assert [(each.code, each.partition) for each in report.findings] == [
        (FindingCode.COULD_NOT_TELL, 0)
    ]
    found = reconcile(story.services())
    assert [each.partition for each in found.findings] == [0]
    assert {each.account.partition.partition: each.verdict for each in found.partitions} == {
        0: Verdict.UNKNOWN,
        1: Verdict.PROVEN_OK,
    }
    story.broker.leaderless = set()
    assert land_feed(story.services(), None, OWNER).findings == []
    assert story.published_offsets()[0] == list(range(15))


def test_a_batch_with_a_partition_that_lost_its_leader_starts_no_spark(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, OWNER).batches[0].batch_id
    story.broker.leaderless = {1}
    with pytest.raises(BrokerUnavailable, match="no leader can say how far orders-1 may be read"):
        land_batch(services, batch, FIRST, OWNER)


def test_one_unreadable_anchor_stops_nobody(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    records_at = story.broker.records_at

    def damaged(topic: str, offsets: Any) -> Any:
        if offsets.get(0) == 9:
            raise SourceRefused("the record of orders-0 at 9", "a damaged batch")
        return records_at(topic, offsets)

    story.broker.records_at = damaged  # type: ignore[method-assign]
    assert not land_feed(story.services(), None, OWNER).errors
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}
