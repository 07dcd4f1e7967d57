"""Records that come too late for their own window are landed, counted, and named."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.landed import LateRows
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.looks import CameLate
from tallystick.domain.window import Window
from tallystick.ledger.batches import BatchRecord
from tallystick.report.faces import face_of
from tallystick.report.wording import instant_text
from tallystick.storage.parquet_file import LandedParquet
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

HOUR = timedelta(hours=1)
END = NOW.replace(minute=0)
"""Of the newest window that is over."""
WINDOW = Window(END - HOUR, END)
BEFORE = Window(END - 2 * HOUR, END - HOUR)
OLDEST = END - 3 * HOUR + timedelta(seconds=1, milliseconds=2)
HALF_PAST = END - HOUR - HOUR / 2
"""In the window before."""
OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two windows in one partition, the first one landed; three records of the second are late."""
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    times = [HALF_PAST, END - HOUR, HALF_PAST, OLDEST, END - 2 * HOUR, END - HOUR / 2, END]
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=times[0])
    land(story, BEFORE)
    for each in times[1:]:
        log.append(Kind.RECORD, 1, at=each)
    return story


def land(story: Story, window: Window = WINDOW, until: str = "window_end") -> None:
    assert not land_feed(story.services(until=until), window, OWNER).errors


def batches(story: Story) -> Sequence[BatchRecord]:
    return story.services().ledger.batches(FEED)


def late(story: Story, before: datetime | None = None) -> CameLate | None:
    return story.services().ledger.late_rows(FEED, before)


def newest(story: Story) -> BatchId:
    return batches(story)[-1].status.plan.batch_id


def test_rows_that_are_older_than_their_window_are_counted(story: Story) -> None:
    land(story)

    assert [each.late for each in batches(story)] == [None, LateRows(3, OLDEST)]
    assert late(story, END - HOUR) == CameLate(END - HOUR, 3, OLDEST, newest(story))
    assert late(story) == CameLate(None, 3, OLDEST, newest(story))
    # Under windows that begin there, or later, none lies.
    assert late(story, END) is None
    assert late(story, OLDEST) is None
    # At most: only one of the three is from before this instant.
    assert late(story, OLDEST + timedelta(milliseconds=1)) == CameLate(
        OLDEST + timedelta(milliseconds=1), 3, OLDEST, newest(story)
    )


def test_a_manifest_says_of_each_file_what_is_late_and_nothing_of_others(story: Story) -> None:
    land(story)

    files = [
        file
        for path in sorted((story.directory / "landing" / FEED).rglob("_tally.json"))
        for file in json.loads(path.read_text())["files"]
    ]
    assert [each.get("late") for each in files] == [None, [3, OLDEST.isoformat()]]
    assert ["late" in each for each in files] == [False, True]


def test_a_late_record_of_the_next_run_is_told_of_the_window_that_it_missed(story: Story) -> None:
    land(story, BEFORE)
    assert feed_completeness(story.services().ledger, FEED, END - HOUR).late is None

    land(story)

    found = feed_completeness(story.services().ledger, FEED)
    assert (found.window_end, found.late) == (END, late(story))
    told = feed_completeness(story.services().ledger, FEED, END - HOUR).late
    assert told == late(story, END - HOUR) is not None


def test_of_a_feed_that_lands_all_nothing_is_read_or_counted(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Sequence[str]] = []
    really = LandedParquet.batches

    def noted(file: LandedParquet, row_group: int, columns: Sequence[str], **more: Any) -> Any:
        read.append(columns)
        return really(file, row_group, columns, **more)

    monkeypatch.setattr(LandedParquet, "batches", noted)
    land(story, until="now")

    assert ("partition", "offset") in read
    assert ("partition", "offset", "timestamp") not in read
    assert [each.late for each in batches(story)] == [None, None]
    assert feed_completeness(story.services().ledger, FEED, END - HOUR).late is None


def test_a_record_without_a_time_is_not_late(story: Story) -> None:
    story.broker.logs[0].entries[3].timestamp_ms = -1
    land(story)

    assert batches(story)[-1].late == LateRows(2, END - 2 * HOUR)


@pytest.mark.parametrize("without_manifest", [False, True])
def test_a_ledger_that_is_made_anew_knows_it_again(
    story: Story, ledger_databases: Callable[[], str], without_manifest: bool
) -> None:
    land(story)
    known = late(story, END - HOUR)
    assert known
    if without_manifest:
        for each in (story.directory / "landing" / FEED).rglob("_tally.json"):
            each.unlink()
    after = replace(story, dsn=ledger_databases())

    services = after.services(until="window_end")
    assert rebuild(services, without_manifest=without_manifest).is_whole

    assert known == late(after, END - HOUR)
    assert [each.late for each in batches(after)] == [None, LateRows(3, OLDEST)]


def test_a_repair_that_lands_a_batch_again_counts_its_rows_once(story: Story) -> None:
    land(story)
    known = late(story, END - HOUR)
    assert known
    [*_, file] = sorted((story.directory / "landing" / FEED).rglob("*.parquet"))
    file.unlink()
    services = story.services(until="window_end")
    reconcile(services)

    assert not repair_feed(services, story.named(), OWNER).errors

    assert len(batches(story)) == 3
    assert late(story, END - HOUR) == replace(known, batch_id=newest(story))


def test_a_feed_whose_file_says_now_again_tells_of_late_rows_no_more(story: Story) -> None:
    land(story)
    land(story, until="now")

    assert feed_completeness(story.services().ledger, FEED, END - HOUR).late is None


def test_a_file_without_times_is_not_proven(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    really = pq.write_table

    def without_time(table: pa.Table, *args: Any, **more: Any) -> None:
        place = table.schema.get_field_index("timestamp")
        nothing = pa.nulls(len(table), table.schema.field(place).type)
        really(table.set_column(place, table.schema.field(place), nothing), *args, **more)

    monkeypatch.setattr(pq, "write_table", without_time)
    report = land_feed(story.services(until="window_end"), WINDOW, OWNER)

    assert "rows without timestamp" in str(report.errors)


def test_a_report_says_what_came_late_in_each_form(story: Story) -> None:
    services = story.services(until="window_end")
    plain = report_of(services, reconcile(services))
    assert (plain.late, "Late rows" in face_of(plain, "text") + face_of(plain, "html")) == (
        None,
        False,
    )
    land(story)

    report = report_of(services, reconcile(services))

    assert report.late == CameLate(None, 3, OLDEST, newest(story))
    assert ReportDocument.from_json(report.to_json()) == report
    said = f"Late rows: 3, the oldest of {instant_text(OLDEST)}, the newest in batch"
    for form in ("text", "html"):
        assert f"{said} {newest(story)}." in face_of(report, form)
