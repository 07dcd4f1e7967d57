"""Logs that change under us: expired, re-created, cut, grown again; windows in any order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from secrets import token_hex

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import RecordEvidence
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import VerificationFailed
from tallystick.workflows.landing.checking import failure
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("test")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def land(story: Story, window: Window | None = None, **plan: object) -> RunReport:
    """One run, which is an owner of its own."""
    report = land_feed(story.services(**plan), window, Owner(token_hex(4)))
    assert not report.errors
    return report


def intervals(findings: tuple[Finding, ...] | list[Finding]) -> set[tuple[object, ...]]:
    return {
        (each.code, each.verdict, each.partition, each.from_offset, each.until_offset)
        for each in findings
    }


def test_nothing_new_is_a_clean_run(story: Story) -> None:
    land(story)
    report = land(story)
    assert report.plan.all_batches == ()
    assert report.findings == []
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_expired_offsets_are_lost_and_landing_goes_on(story: Story) -> None:
    land(story)
    story.broker.logs[0].append(Kind.RECORD, 10)
    story.broker.logs[0].log_start_offset = 15
    report = land(story)
    expected = {(FindingCode.EXPIRED, Verdict.PROVEN_LOSS, 0, 10, 15)}
    assert intervals(list(report.findings)) == expected
    assert "orders: PROVEN_LOSS, 1 trouble" in str(failure(FEED, report.findings, []))
    assert story.published_offsets()[0] == [*range(10), *range(15, 20)]
    again = land(story)
    assert again.findings == [], "an old loss does not fail every later run"
    assert intervals(list(reconcile(story.services()).findings)) == expected


def test_a_log_start_at_the_frontier_is_no_loss(story: Story) -> None:
    land(story)
    story.broker.logs[0].append(Kind.RECORD, 5)
    story.broker.logs[0].log_start_offset = 10
    assert land(story).findings == []


def test_offsets_that_expire_before_an_adoption_are_cut_from_the_batch(story: Story) -> None:
    services = story.services()
    from tallystick.workflows.planning.plan import plan_feed

    plan_feed(services, None, Owner("killed"))
    story.broker.logs[0].log_start_offset = 4
    report = land(story)
    assert intervals(list(report.findings)) == {(FindingCode.EXPIRED, Verdict.PROVEN_LOSS, 0, 0, 4)}
    assert story.published_offsets() == {0: list(range(4, 10)), 1: list(range(10))}


@pytest.mark.parametrize("count", [3, 10, 25], ids=["fewer", "equal", "more"])
def test_a_recreated_topic_opens_a_generation(story: Story, count: int) -> None:
    land(story)
    story.broker.logs[0].append(Kind.RECORD, 2)
    land_feed(story.services(), None, OWNER)
    story.broker.recreate()
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, count, value=b"second life")
    report = land(story)
    assert {each.code for each in report.findings} == {FindingCode.TOPIC_RECREATED}
    assert {each.verdict for each in report.findings} == {Verdict.UNKNOWN}
    accounts = story.services().ledger.accounts(FEED)
    assert {each.ordinal for each in accounts.generations.values()} == {2}
    assert {each.frontier for each in accounts.generations.values()} == {count}
    second = [each for each in story.directory.rglob("*.parquet") if "gen=2" in str(each)]
    assert second


def test_the_tail_of_a_recreated_topic_is_lost(story: Story) -> None:
    land(story, max_records_per_run=10)
    story.broker.recreate()
    report = land(story)
    assert (FindingCode.TOPIC_RECREATED, Verdict.PROVEN_LOSS, 0, 5, 10) in intervals(
        list(report.findings)
    )


def test_a_truncated_partition_stops_and_the_others_go_on(story: Story) -> None:
    land(story)
    story.broker.logs[0].cut(6)
    story.broker.logs[1].append(Kind.RECORD, 5)
    report = land(story)
    assert (FindingCode.LOG_CUT, Verdict.PROVEN_LOSS, 0, 6, 10) in intervals(list(report.findings))
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(15))}
    story.broker.logs[0].append(Kind.RECORD, 50)
    report = land(story)
    assert report.findings, "a stopped partition fails every run until somebody decides"
    assert story.published_offsets()[0] == list(range(10))


def test_a_log_that_was_cut_and_grew_again_is_noticed_by_its_anchor(story: Story) -> None:
    land(story)
    story.broker.logs[0].cut(6)
    story.broker.logs[0].append(Kind.RECORD, 20, value=b"others")
    report = land(story)
    found = [each for each in report.findings if each.code is FindingCode.LOG_CUT]
    assert [each.partition for each in found] == [0]
    assert found[0].verdict is Verdict.PROVEN_LOSS
    assert story.published_offsets()[0] == list(range(10))


def test_a_log_that_was_cut_and_has_its_old_end_again_is_noticed_by_its_epoch(
    story: Story,
) -> None:
    land(story)
    story.broker.logs[0].cut(6)
    story.broker.logs[0].append(Kind.RECORD, 4, value=b"others")
    report = land(story)
    assert {(each.code, each.partition) for each in report.findings} == {(FindingCode.LOG_CUT, 0)}


def test_each_plan_reads_the_last_landed_record_of_each_log_again(story: Story) -> None:
    land(story)
    asked: list[dict[int, int]] = []
    records_at = story.broker.records_at

    def noted(topic: str, offsets: Mapping[int, int]) -> Mapping[int, RecordEvidence]:
        asked.append(dict(offsets))
        return records_at(topic, offsets)

    story.broker.records_at = noted  # type: ignore[method-assign]
    plan_feed(story.services(), None, OWNER)
    story.broker.logs[1].append(Kind.RECORD, 1)
    plan_feed(story.services(), None, OWNER)
    assert asked == [{0: 9, 1: 9}] * 2


def test_a_plan_keeps_what_it_saw_of_logs_with_nothing_new(story: Story) -> None:
    land(story)
    story.broker.logs[1].log_start_offset = 4
    plan_feed(story.services(), None, OWNER)
    looked = story.services().ledger.newest_bounds(FEED)
    assert looked
    assert looked.log_start_offsets == {0: 0, 1: 4}
    assert looked.high_watermarks == {0: 10, 1: 10}


def test_a_record_that_another_took_the_place_of_in_one_term_is_noticed_by_the_next_look(
    story: Story,
) -> None:
    """No broker does this: a record changes, the log's end and its leadership term do not."""
    land(story)
    story.broker.logs[1].entries[9].value = b"another"
    found = reconcile(story.services()).findings
    assert (FindingCode.LOG_CUT, 1) in {(each.code, each.partition) for each in found}
    story.broker.logs[1].append(Kind.RECORD, 1)
    assert plan_feed(story.services(), None, OWNER).batches == []


def test_a_compacted_anchor_is_no_alarm(story: Story) -> None:
    land(story)
    story.broker.is_compacted = True
    story.broker.logs[0].entries[9].kind = Kind.COMPACTED
    story.broker.logs[0].append(Kind.RECORD, 5)
    assert land(story).findings == []


def test_an_unexplained_hole_commits_nothing(story: Story) -> None:
    services = story.services()

    def lose_a_record(plan: object) -> None:
        services.spark._port._broker.logs[0].entries[4].kind = Kind.COMPACTED  # type: ignore[attr-defined]

    services.spark._port.before_write = lose_a_record  # type: ignore[attr-defined]
    explain = story.broker.explain_holes
    story.broker.explain_holes = lambda *args, **more: {}  # type: ignore[method-assign]
    report = land_feed(services, None, OWNER)
    story.broker.explain_holes = explain  # type: ignore[method-assign]
    [error] = report.errors
    assert isinstance(error, VerificationFailed)
    assert "orders-0 [0, 10): 1 offsets are not landed, and no cause is proven: 4" in str(error)
    assert story.published_offsets() == {}


def test_a_log_that_is_cut_and_grows_during_the_read_commits_nothing(story: Story) -> None:
    services = story.services()

    def after(plan: object) -> None:
        story.broker.logs[0].cut(5)
        story.broker.logs[0].append(Kind.RECORD, 30, value=b"others")

    run = services.spark._port.run  # type: ignore[attr-defined]

    def run_then_cut(order: object, *, started: object) -> None:
        run(order, started=started)
        after(None)

    services.spark._port.run = run_then_cut  # type: ignore[attr-defined]
    [error] = land_feed(services, None, OWNER).errors
    assert "orders-0 [0, 10): the log was cut during the read" in str(error)
    assert story.published_offsets() == {}


def test_an_added_partition_starts_at_its_log_start(story: Story) -> None:
    land(story)
    story.broker.logs[2] = type(story.broker.logs[0])()
    story.broker.logs[2].append(Kind.RECORD, 4)
    land(story)
    assert story.published_offsets()[2] == list(range(4))


def test_what_expired_of_an_added_partition_before_any_plan_is_unknown(story: Story) -> None:
    land(story)
    log = story.broker.logs[2] = type(story.broker.logs[0])()
    log.append(Kind.RECORD, 30)
    log.log_start_offset = 20
    expected = {(FindingCode.EXPIRED, Verdict.UNKNOWN, 2, 0, 20)}

    report = land(story)

    assert intervals(list(report.findings)) == expected
    assert story.published_offsets()[2] == list(range(20, 30))
    assert intervals(list(reconcile(story.services()).findings)) == expected
    found = feed_completeness(story.services().ledger, FEED).proven
    assert [each.blocked_by is not None for each in found.partitions] == [False, False, True]
    assert land(story).findings == [], "an old doubt does not fail every later run"


def test_what_expired_of_a_new_life_before_any_plan_is_unknown(story: Story) -> None:
    land(story)
    story.broker.recreate()
    story.broker.logs[0].append(Kind.RECORD, 30)
    story.broker.logs[0].log_start_offset = 20

    report = land(story)

    assert (FindingCode.EXPIRED, Verdict.UNKNOWN, 0, 0, 20) in intervals(list(report.findings))


def hours(number: int) -> Window:
    start = NOW.replace(minute=0) + timedelta(hours=number)
    return Window(start, start + timedelta(hours=1))


def a_day(story: Story) -> None:
    """Three hours of records in each partition, ten an hour, the first hour being 12."""
    for log in story.broker.logs.values():
        for hour in (1, 2):
            log.append(Kind.RECORD, 10, at=NOW + timedelta(hours=hour))


def test_windows_in_any_order_land_every_offset_once(story: Story) -> None:
    a_day(story)
    for number in (1, 0, 1, 2, 0, 2):
        land(story, hours(number), until="window_end")
    assert story.published_offsets() == {0: list(range(30)), 1: list(range(30))}


@pytest.mark.parametrize(
    ("hours_ago", "until", "is_told"),
    [(1, "now", False), (48, "now", True), (48, "window_end", False)],
)
def test_new_records_under_an_old_window_are_told(
    story: Story, caplog: pytest.LogCaptureFixture, hours_ago: int, until: str, *, is_told: bool
) -> None:
    caplog.set_level(logging.INFO)
    story.broker.logs[0].append(Kind.RECORD, 5)
    end = NOW - timedelta(hours=hours_ago)
    window = Window(end - timedelta(hours=1), end)

    shown = dry_run(story.services(until=until), window)
    report = plan_feed(story.services(until=until), window, Owner("backfill"))
    words = (
        f"plan.until is 'now': this run puts current records under the old window {window}."
        " Use 'window_end' to keep directories by record time."
    )
    assert list(shown.warnings) == list(report.warnings) == [words] * is_told
    # Before anything is claimed: the plan's own words come after it.
    said = [each for each in caplog.messages if each == words or each.startswith("Plan ")]
    assert said[:-1] == [words] * is_told


def test_a_window_lands_up_to_its_end_only(story: Story) -> None:
    a_day(story)
    land(story, hours(0), until="window_end")
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_start_latest_begins_at_the_end_and_only_once(story: Story) -> None:
    services = story.services()
    latest = services.feed.model_copy(
        update={"source": services.feed.source.model_copy(update={"start": "latest"})}
    )
    from dataclasses import replace

    land_feed(replace(services, feed=latest), None, OWNER)
    assert story.published_offsets() == {}
    story.broker.logs[0].append(Kind.RECORD, 3)
    land_feed(replace(story.services(), feed=latest), None, OWNER)
    assert story.published_offsets() == {0: [10, 11, 12]}


def test_a_deleted_file_is_named_to_the_offset(story: Story) -> None:
    land(story)
    [file] = [each for each in story.directory.rglob("*.parquet") if "_staging" not in str(each)]
    file.unlink()
    found = intervals(list(reconcile(story.services()).findings))
    assert found == {
        (FindingCode.COMMITTED_FILE_MISSING, Verdict.PROVEN_LOSS, 0, 0, 10),
        (FindingCode.COMMITTED_FILE_MISSING, Verdict.PROVEN_LOSS, 1, 0, 10),
    }


def test_a_stray_file_is_told(story: Story) -> None:
    land(story)
    [file] = [each for each in story.directory.rglob("*.parquet") if "_staging" not in str(each)]
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    found = reconcile(story.services()).findings
    assert {each.code for each in found} == {FindingCode.STRAY_FILE, FindingCode.LANDED_TWICE}
    assert all(str(each.evidence["path"]).endswith("copy.parquet") for each in found)
    twice = {
        (each.partition, each.from_offset, each.until_offset)
        for each in found
        if each.code is FindingCode.LANDED_TWICE
    }
    doubled = {
        partition: [offset for offset in offsets if offsets.count(offset) > 1]
        for partition, offsets in story.published_offsets().items()
    }
    assert twice == {
        (partition, offsets[0], offsets[-1] + 1)
        for partition, offsets in doubled.items()
        if offsets
    }
