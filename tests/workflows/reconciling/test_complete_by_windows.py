"""With `plan.until: window_end` a feed is complete up to a window's end while its topic lives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.report.completeness import CompleteBy, Completeness, Proof
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

HOUR = timedelta(hours=1)
END = NOW.replace(minute=0, second=0, microsecond=0)
"""Of the newest window that is over."""
WINDOW = Window(END - HOUR, END)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Five records of the last hour in each of two partitions, and three of this hour."""
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5, at=END - HOUR / 2)
        log.append(Kind.RECORD, 3, at=END)
    return story


def land(
    story: Story, window: Window | None = WINDOW, until: str = "window_end", **plan: Any
) -> None:
    assert not land_feed(story.services(until=until, **plan), window, Owner("one")).errors


def proven(story: Story) -> Completeness:
    return feed_completeness(story.services().ledger, FEED).proven


def test_a_window_is_complete_once_its_records_are_landed_and_more_are_readable(
    story: Story,
) -> None:
    land(story)

    found = feed_completeness(story.services().ledger, FEED)
    assert (found.proven.up_to, found.proven.by) == (END, CompleteBy.RECORD_TIME)
    assert found.window_end == END
    assert found.proven.proof_of(END) is Proof.PROVEN
    assert found.proven.proof_of(END + timedelta(seconds=1)) is not Proof.PROVEN
    assert story.published_offsets() == {each: [*range(5)] for each in (0, 1)}


def test_a_window_of_which_a_record_is_not_landed_is_not_complete(story: Story) -> None:
    land(story, max_records_per_run=8)

    assert proven(story).proof_of(END) is Proof.NOT_PROVEN
    land(story)
    assert proven(story).proof_of(END) is Proof.PROVEN


def test_a_committed_batch_that_was_deleted_holds_its_window_back(story: Story) -> None:
    land(story)
    next((story.directory / "landing" / FEED).rglob("*.parquet")).unlink()

    reconcile(story.services(until="window_end"))

    assert proven(story).proof_of(END) is Proof.NOT_PROVEN


def test_a_late_record_waits_for_the_next_run_and_takes_no_proof_away(story: Story) -> None:
    land(story)
    story.broker.logs[0].append(Kind.RECORD, 1, at=END - HOUR / 2)

    reconcile(story.services(until="window_end"))

    assert proven(story).proof_of(END) is Proof.PROVEN


def test_what_arrives_late_before_any_later_record_takes_no_proof_away(story: Story) -> None:
    quiet = Story(story.dsn, story.directory, ScriptedBroker("orders"))
    for log in quiet.broker.logs.values():
        log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    land(quiet)
    quiet.broker.logs[0].append(Kind.RECORD, 1, at=END - HOUR / 3)

    reconcile(quiet.services(until="window_end"))

    assert proven(quiet).proof_of(END) is Proof.PROVEN, "the log did not have it at the first look"


def test_behind_a_record_of_the_future_no_window_is_complete(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=NOW + timedelta(days=9))
    del log.entries[5:8]  # so the record of the future follows those of the last hour
    log.append(Kind.RECORD, 4, at=END - HOUR / 3)

    land(story)

    assert story.published_offsets()[0] == [*range(5)]
    assert proven(story).proof_of(END) is Proof.UNKNOWN
    land(story)
    ledger = story.services().ledger
    assert [each.finding.code for each in ledger.findings(FEED)] == [FindingCode.NO_PROGRESS]


class MadeAnew(ScriptedBroker):
    """A topic that is deleted and made anew between a snapshot and the question for a time."""

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        if self.topic_id.endswith("1"):
            self.recreate()
        return super().offsets_at(topic, instant, partitions)


def test_a_border_in_another_log_proves_nothing(story: Story) -> None:
    land(story)
    anew = MadeAnew("orders")
    anew.logs = story.broker.logs
    other = Story(story.dsn, story.directory, anew)
    for log in anew.logs.values():
        log.append(Kind.RECORD, 5, at=END)

    reconcile(other.services(until="window_end"))

    *before, newest = other.services().ledger.look_places(FEED)
    assert {each.border_at for each in (*before, newest)} == {END}
    looks = other.services().ledger.looks([newest.snapshot_id])
    assert not any(looks[newest.snapshot_id].ends)


def test_the_newest_look_says_by_what_a_feed_is_complete(story: Story) -> None:
    land(story)
    land(story, until="now")

    found = proven(story)

    assert (found.up_to, found.by) == (NOW, CompleteBy.READABLE)


def test_a_window_that_is_not_over_is_no_window_of_a_look(story: Story) -> None:
    land(story, Window(END, END + HOUR))

    assert story.published_offsets() == {each: [*range(8)] for each in (0, 1)}
    assert proven(story).up_to == END


def test_a_report_shows_windows_as_columns_and_what_is_not_due_yet_in_none(story: Story) -> None:
    land(story)
    services = story.services(until="window_end")

    report = report_of(services, reconcile(services))

    assert (report.complete_up_to, report.complete_by) == (END, CompleteBy.RECORD_TIME)
    assert report.coverage.edges[:2] == (END - HOUR, END)
    assert {each.verdicts[0] for each in report.coverage.blocks} == {Verdict.PROVEN_OK}
    assert [each.landed_rows for each in report.columns] == [10, 0]
