"""With `plan.until: window_end` every record lies under its own window, whichever run lands it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

HOUR = timedelta(hours=1)
DAY = NOW.replace(hour=0, minute=0)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    return Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))


def hour(number: int) -> Window:
    return Window(DAY + number * HOUR, DAY + (number + 1) * HOUR)


def land(story: Story, window: Window, **plan: Any) -> RunReport:
    services = story.services(until="window_end", **plan)
    report = land_feed(services, window, Owner(token_hex(4)))
    assert not report.errors
    return report


def a_morning(story: Story, hours: int = 11) -> None:
    """Ten records an hour in each of two partitions, from midnight on."""
    for number in range(hours):
        for partition, log in story.broker.logs.items():
            for minute in range(0, 60, 6):
                at = DAY + number * HOUR + timedelta(minutes=minute + partition)
                log.append(Kind.RECORD, 1, at=at)


def by_directory(story: Story) -> dict[str, list[datetime]]:
    """The times of the landed records by `dt=.../hour=..`, in their order."""
    found: dict[str, list[datetime]] = {}
    for file in sorted((story.directory / "landing" / FEED).rglob("*.parquet")):
        place = "/".join(file.relative_to(story.directory).parts[3:5])
        times = pq.read_table(file, columns=["timestamp"], partitioning=None)["timestamp"]
        found.setdefault(place, []).extend(each.astimezone(UTC) for each in times.to_pylist())
    return {place: sorted(found[place]) for place in sorted(found)}


def own_directory(at: datetime) -> str:
    return f"dt={at:%Y-%m-%d}/hour={at:%H}"


def test_a_run_that_catches_up_lands_every_record_under_its_own_window(story: Story) -> None:
    a_morning(story)

    land(story, hour(9))

    found = by_directory(story)
    assert list(found) == [own_directory(DAY + n * HOUR) for n in range(10)]
    assert {own_directory(at) for times in found.values() for at in times} == set(found)
    for place, times in found.items():
        assert {own_directory(each) for each in times} == {place}
        assert len(times) == 20


def test_a_run_without_a_window_takes_the_newest_one_that_is_over(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    a_morning(story, 13)
    services = story.services(until="window_end")

    shown = dry_run(services, None)
    landed = land_feed(services, None, Owner("by hand"))

    assert (shown.window, landed.plan.window) == (hour(11), hour(11))
    assert list(by_directory(story)) == [own_directory(DAY + n * HOUR) for n in range(12)]
    said = f"No window was given: this is the newest one that is over, {hour(11)}."
    assert caplog.messages.count(said) == 2


@pytest.mark.parametrize(("number", "is_told"), [(11, False), (12, True), (20, True)])
@pytest.mark.parametrize("until", ["now", "window_end"])
def test_a_window_that_is_not_over_is_told(
    story: Story, until: str, number: int, is_told: bool
) -> None:
    shown = dry_run(story.services(until=until), hour(number))

    words = f"The window {hour(number)} is not over: a later run lands what comes until its end."
    assert list(shown.warnings) == [words] * is_told


def test_a_backfill_of_a_window_that_was_caught_up_before_is_a_no_op(story: Story) -> None:
    a_morning(story)
    land(story, hour(9))
    before = by_directory(story)

    report = land(story, hour(3))

    assert (report.batches, report.plan.wanted) == ([], 0)
    assert by_directory(story) == before


def test_a_backfill_lands_its_own_records_in_its_own_directory_and_older_ones_in_theirs(
    story: Story,
) -> None:
    a_morning(story)

    land(story, hour(3))

    assert list(by_directory(story)) == [own_directory(DAY + n * HOUR) for n in range(4)]
    land(story, hour(9))
    assert {place: len(times) for place, times in by_directory(story).items()} == {
        own_directory(DAY + n * HOUR): 20 for n in range(10)
    }
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_a_batch_bears_its_own_window_in_ledger_manifest_and_plan(story: Story) -> None:
    a_morning(story)
    shown = dry_run(story.services(until="window_end"), hour(2))
    assert [each.window for each in shown.batches] == [hour(n) for n in range(3)]
    assert shown.window == hour(2)

    report = land(story, hour(2))

    assert [each.window for each in report.plan.batches] == [hour(n) for n in range(3)]
    records = story.services().ledger.batches(FEED)
    assert [each.status.plan.window for each in records] == [hour(n) for n in range(3)]
    manifests = [
        Manifest.from_json(path.read_text())
        for path in sorted((story.directory / "landing" / FEED).rglob("_tally.json"))
    ]
    assert [(each.plan.window, each.plan.label) for each in manifests] == [
        (hour(n), DAY + n * HOUR) for n in range(3)
    ]


def test_a_run_cuts_a_hundred_windows_and_says_what_it_leaves(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tallystick")
    for ago in range(130, 0, -1):
        story.broker.logs[0].append(Kind.RECORD, 2, at=DAY - ago * HOUR)
    story.broker.logs[1].append(Kind.RECORD, 1, at=DAY)
    services = story.services(until="window_end")

    shown = dry_run(services, hour(0))
    report = plan_feed(services, hour(0), Owner("first"))

    # The hundred oldest; and the oldest of the partition that has none among them.
    starts = [DAY - ago * HOUR for ago in range(130, 30, -1)] + [DAY]
    assert [each.label for each in shown.batches] == starts
    assert [each.label for each in report.batches] == starts
    assert (report.wanted, report.planned, report.left, shown.left) == (261, 201, 60, 60)
    assert "60 due offsets are left to the next run, by the limits of one." in caplog.messages

    rest = plan_feed(services, hour(1), Owner("second"))

    assert [each.label for each in rest.batches] == [DAY - n * HOUR for n in range(30, 0, -1)]
    assert (rest.left, len(rest.adopted)) == (0, 101)


def test_a_late_record_goes_with_the_offsets_around_it_and_lands_once(story: Story) -> None:
    log = story.broker.logs[0]
    for minutes in (70, 130, 75, 135):
        log.append(Kind.RECORD, 1, at=DAY + timedelta(minutes=minutes))

    land(story, hour(2))

    assert story.published_offsets() == {0: [0, 1, 2, 3]}
    assert {place: len(times) for place, times in by_directory(story).items()} == {
        own_directory(DAY + HOUR): 1,
        own_directory(DAY + 2 * HOUR): 3,
    }


def test_what_comes_after_its_window_is_over_still_lands_under_it(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 1, at=DAY)
    land(story, hour(0))
    log.append(Kind.RECORD, 1, at=DAY + timedelta(minutes=59))
    log.append(Kind.RECORD, 1, at=DAY + timedelta(minutes=61))

    land(story, hour(1))

    assert {place: len(times) for place, times in by_directory(story).items()} == {
        own_directory(DAY): 2,
        own_directory(DAY + HOUR): 1,
    }


def test_a_plan_of_several_windows_is_resumed_with_all_of_them(story: Story) -> None:
    a_morning(story, 3)
    services = story.services(until="window_end", lease=timedelta(minutes=1))
    frozen = plan_feed(services, hour(2), Owner("killed"))

    again = plan_feed(services, hour(2), Owner("killed"))

    assert again.is_resumed
    assert again.batches == frozen.batches
    assert [each.window for each in again.batches] == [hour(n) for n in range(3)]


def test_batches_of_several_windows_that_a_dead_run_left_are_adopted_with_their_windows(
    story: Story,
) -> None:
    a_morning(story, 4)
    plan_feed(story.services(until="window_end"), hour(2), Owner("killed"))

    report = land(story, hour(3))

    assert [each.window for each in report.plan.adopted] == [hour(n) for n in range(3)]
    assert [each.window for each in report.plan.batches] == [hour(3)]
    assert {place: len(times) for place, times in by_directory(story).items()} == {
        own_directory(DAY + n * HOUR): 20 for n in range(4)
    }
