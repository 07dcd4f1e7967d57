"""Files that no committed batch owns: which of them readers count twice, and which are none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import Owner
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.workflows.committing.publishing import finish
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.effects import Countdown, Crash
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("test")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch and one file."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def files(story: Story) -> list[Path]:
    """What readers find, in the order of the names."""
    return sorted((story.directory / "landing" / FEED).rglob("*.parquet"))


def found(story: Story) -> list[Finding]:
    return list(reconcile(story.services()).findings)


def twice(findings: list[Finding]) -> list[tuple[int | None, int | None, int | None]]:
    return sorted(
        (each.partition, each.from_offset, each.until_offset)
        for each in findings
        if each.code is FindingCode.LANDED_TWICE
    )


def test_a_stray_is_told_below_a_root_where_nothing_was_committed_yet(story: Story) -> None:
    services = story.services()
    target = services.feed.target.model_copy(update={"root": "/other"})
    moved = replace(services, feed=services.feed.model_copy(update={"target": target}))
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    plan_feed(moved, None, OWNER)

    stray = story.directory / "other" / FEED / "gen=1" / "copy.parquet"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(files(story)[0].read_bytes())
    told = [each.subject for each in found(story) if each.code is FindingCode.STRAY_FILE]
    assert told == [f"/other/{FEED}/gen=1/copy.parquet"]


def test_a_stray_file_with_the_only_copy_of_lost_rows_doubles_none_of_them(story: Story) -> None:
    [file] = files(story)
    content = file.read_bytes()
    file.unlink()
    story.broker.logs[0].log_start_offset = 10
    found(story)
    repair_feed(story.services(), story.named(), OWNER)
    file.write_bytes(content)
    assert story.published_offsets() == {0: list(range(10)), 1: [*sorted([*range(10)] * 2)]}
    assert twice(found(story)) == [(1, 0, 10)]


def test_a_stray_file_with_rows_that_are_only_claimed_doubles_none_of_them(story: Story) -> None:
    [file] = files(story)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    land_feed(story.services(), None, OWNER)
    [newer] = [each for each in files(story) if each != file]
    (file.parent / "copy.parquet").write_bytes(newer.read_bytes())
    assert twice(found(story)) == [(0, 10, 15), (1, 10, 15)]
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    plan_feed(story.services(), None, Owner("killed"))
    rows = pq.read_table(newer, partitioning=None)
    later = pc.add(rows["offset"], 5)
    moved = rows.set_column(rows.schema.get_field_index("offset"), "offset", later)
    pq.write_table(moved, file.parent / "copy.parquet")
    assert [each.offsets.until_offset for each in claims(story)] == [20, 20]
    assert twice(found(story)) == []


def claims(story: Story) -> list[PlannedRange]:
    accounts = story.services().ledger.accounts(FEED)
    return [each for batch in accounts.unfinished for each in batch.plan.ranges]


def test_a_replaced_file_in_its_old_place_is_no_stray_before_its_repair_is_shown(
    story: Story,
) -> None:
    [file] = files(story)
    pq.write_table(pq.read_table(file, partitioning=None), file, compression="none")
    assert {each.code for each in found(story)} == {FindingCode.CONTENT_CHANGED}
    died_after_the_commit_of_a_repair(story)
    assert file.exists()
    assert not {each.code for each in found(story)} & {
        FindingCode.STRAY_FILE,
        FindingCode.LANDED_TWICE,
    }
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}
    finish(story.services())
    assert found(story) == []
    pq.write_table(pq.read_table(files(story)[0], partitioning=None), file)
    assert {each.code for each in found(story)} == {
        FindingCode.STRAY_FILE,
        FindingCode.LANDED_TWICE,
    }


def test_a_stray_copy_of_transactions_is_one_finding_a_partition_with_its_exact_runs(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    """Behind each transaction is its marker, which no file holds."""
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    for _ in range(30):
        for log in story.broker.logs.values():
            log.append(Kind.RECORD, 2)
            log.append(Kind.CONTROL, 1)
    land_feed(story.services(), None, OWNER)
    [file] = files(story)
    copy = file.parent / "copy.parquet"
    copy.write_bytes(file.read_bytes())
    doubled = [each for each in found(story) if each.code is FindingCode.LANDED_TWICE]
    assert twice(doubled) == [(0, 0, 89), (1, 0, 89)]
    runs = [[first, first + 2] for first in range(0, 90, 3)]
    for each in doubled:
        path = "/" + str(copy.relative_to(story.directory))
        digest = OffsetRuns.of((first, until) for first, until in runs).digest
        named = {"offsets": 60, "runs": 30, "first_runs": runs, "runs_sha256": digest}
        assert each.evidence == {"path": path, **named}
        assert "It is 60 of them, in 30 runs." in each.cause
    before = [each.finding_id for each in story.services().ledger.findings(FEED)]
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    land_feed(story.services(), None, OWNER)
    found(story)
    assert [each.finding_id for each in story.services().ledger.findings(FEED)] == before


def test_a_file_that_is_still_being_written_by_a_copy_is_told_and_left_alone(story: Story) -> None:
    """Spark skips it, other readers don't. What it will hold nobody can tell yet."""
    [file] = files(story)
    part = file.parent / "restored.parquet._COPYING_"
    part.write_bytes(file.read_bytes()[:100])
    assert [each.code for each in found(story)] == [FindingCode.STRAY_FILE]
    repair_feed(story.services(), (), OWNER)
    assert part.exists()


def test_a_file_that_only_spark_steps_down_to_is_told(story: Story) -> None:
    [file] = files(story)
    hidden = file.parent / "_metadata_of_old" / "part.parquet"
    hidden.parent.mkdir()
    hidden.write_bytes(file.read_bytes())
    told = {FindingCode.STRAY_FILE, FindingCode.LANDED_TWICE}
    assert {each.code for each in found(story)} == told


def died_after_the_commit_of_a_repair(story: Story) -> None:
    for steps in range(80):
        with suppress(Crash):
            repair_feed(story.services(Countdown(steps, after=True)), (), OWNER)
        states = {each.status.state for each in story.services().ledger.batches(FEED)}
        if BatchState.COMMITTED in states:
            return
    raise AssertionError("no step of the repair leaves it committed and not published")
