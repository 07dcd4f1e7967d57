"""Repair on a real ledger and real files: exactly what is damaged is mended, wherever one dies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.repair.landing_again import LATER
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ClaimConflict, RepairRefused
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair, dry_repair, repair_feed
from tallystick.workflows.services import Services
from tests.support.effects import Countdown, Crash
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

OWNER, OTHER = Owner("one"), Owner("other")
LONG = timedelta(seconds=60)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch, and five more each in another."""
    return a_landed_story(ledger_databases(), tmp_path, 10, 5)


ALL = {0: list(range(15)), 1: list(range(15))}


def files(story: Story) -> list[Path]:
    """The readers' files, oldest batch first."""
    names = [each.file.name for each in story.services().ledger.files(FEED)]
    found = {each.name: each for each in (story.directory / "landing" / FEED).rglob("*.parquet")}
    return [found[name] for name in names if name in found]


def codes(report: ReconcileReport) -> set[str]:
    return {each.code.value for each in report.findings}


def standing(story: Story) -> list[int]:
    return [each.finding_id for each in story.services().ledger.findings(FEED)]


def damage(file: Path) -> None:
    """The same length, other bytes."""
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [Path.unlink, damage], ids=["missing", "damaged"])
def test_exactly_the_harmed_file_is_landed_again(
    story: Story, harm: Callable[[Path], object]
) -> None:
    victim, *others = files(story)
    untouched = {each: each.read_bytes() for each in others}
    harm(victim)
    reconcile(story.services())
    before = standing(story)
    assert before
    report = repair_feed(story.services(), story.named(), OWNER)
    assert not report.errors
    assert sorted(report.closed) == before
    assert story.published_offsets() == ALL
    assert {each: each.read_bytes() for each in others} == untouched
    assert not victim.exists()
    after = reconcile(story.services())
    assert after.findings == ()
    assert [each.record_count for each in after.partitions] == [15, 15]
    assert standing(story) == []


@pytest.mark.parametrize("moved", ["file", "directory", "day"])
def test_what_was_moved_away_whole_is_landed_again_by_its_number_only(
    story: Story, tmp_path: Path, moved: str
) -> None:
    """Somebody may have put it into a warehouse, or an age limit may have deleted it."""
    victim = files(story)[0]
    whole = {"file": victim, "directory": victim.parent, "day": victim.parents[2]}[moved]
    whole.rename(tmp_path / "warehouse")
    reconcile(story.services())
    before = standing(story)

    for report in (dry_repair(story.services(), ()), repair_feed(story.services(), (), OWNER)):
        assert not report.plan.land_again
        assert {each.finding_id for each in report.not_mended} == set(before)
        assert all("name this finding" in each.reason for each in report.not_mended)
    assert standing(story) == before

    assert not repair_feed(story.services(), before, OWNER).not_mended
    assert story.published_offsets() == ALL


def test_a_damaged_file_is_kept_in_quarantine(story: Story) -> None:
    victim = files(story)[0]
    damage(victim)
    content = victim.read_bytes()
    reconcile(story.services())
    repair_feed(story.services(), (), OWNER)
    kept = list((story.directory / "landing" / "_quarantine").rglob("*.parquet"))
    assert [each.read_bytes() for each in kept] == [content]


def test_a_dry_run_says_the_same_and_changes_nothing(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    batches = len(story.services().ledger.batches(FEED))
    dry = dry_repair(story.services(), story.named())
    [again] = dry.plan.land_again
    assert {str(each.offsets) for each in again.ranges} == {"orders-0 [0, 10)", "orders-1 [0, 10)"}
    assert len(story.services().ledger.batches(FEED)) == batches
    assert standing(story)


def test_a_stray_is_moved_aside_and_kept(story: Story) -> None:
    file = files(story)[0]
    stray = file.parent / "copy.parquet"
    stray.write_bytes(file.read_bytes())
    assert codes(reconcile(story.services())) == {"A9", "B2"}
    report = repair_feed(story.services(), (), OWNER)
    assert [each.path.rsplit("/")[-1] for each in report.quarantined] == ["copy.parquet"]
    assert story.published_offsets() == ALL
    kept = story.directory / report.quarantined[0].quarantine.lstrip("/")
    assert kept.read_bytes() == file.read_bytes()
    assert reconcile(story.services()).findings == ()
    assert standing(story) == []


def test_what_the_broker_has_no_more_stays_lost_and_says_so(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    for log in story.broker.logs.values():
        log.log_start_offset = 12
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert all("has none of these offsets" in each.reason for each in report.plan.not_mended)
    found = reconcile(story.services()).findings
    assert {each.verdict for each in found} == {Verdict.PROVEN_LOSS}
    assert {(each.partition, each.from_offset, each.until_offset) for each in found} == {
        (0, 0, 10),
        (1, 0, 10),
    }


def test_of_a_missing_file_the_rest_is_mended_and_the_expired_part_is_lost(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = 4
    [again] = dry_repair(story.services(), story.named()).plan.land_again
    assert [str(each) for each in again.gone] == ["orders-0 [0, 4)"]
    repair_feed(story.services(), story.named(), OWNER)
    assert story.published_offsets() == {0: list(range(4, 15)), 1: list(range(15))}
    [lost] = reconcile(story.services()).findings
    assert (lost.code, lost.verdict) == (FindingCode.COMMITTED_FILE_MISSING, Verdict.PROVEN_LOSS)
    assert (lost.partition, lost.from_offset, lost.until_offset) == (0, 0, 4)


def test_a_damaged_file_that_may_hold_the_only_rows_is_left(story: Story) -> None:
    victim = files(story)[0]
    damage(victim)
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = 4
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert victim.exists()
    assert {each.reason for each in report.plan.not_mended} == {
        "the broker has a part of these offsets only, and the file, as far as it can be read,"
        " holds the others: it is left as it is."
    }


def test_what_is_too_much_for_one_repair_is_left_to_the_next(story: Story) -> None:
    """Claims that nobody carries out would keep their findings from being repaired."""

    def services() -> Services:
        return replace(story.services(), most_batches=1)

    for each in files(story):
        each.unlink()
    reconcile(story.services())
    dry = dry_repair(services(), story.named())
    first = repair_feed(services(), story.named(), OWNER)
    assert len(dry.plan.land_again) == len(first.batches) == 1
    assert {each.reason for each in first.not_mended} == {LATER}
    assert sorted([*first.closed, *(each.finding_id for each in first.not_mended)]) == sorted(
        {*first.closed, *standing(story)}
    )
    assert repair_feed(services(), story.named(), OWNER).not_mended == ()
    assert story.published_offsets() == ALL
    assert standing(story) == []


def test_a_repair_takes_over_no_more_than_it_can_carry_out(story: Story) -> None:
    for each in files(story):
        each.unlink()
    reconcile(story.services())
    assert len(begin_repair(story.services(), story.named(), OWNER).batches) == 2
    few = replace(story.services(), most_batches=1)
    assert len(begin_repair(few, story.named(), OTHER).batches) == 1


def test_a_repair_beside_a_repair_is_refused_or_finds_nothing_to_do(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    begun = begin_repair(story.services(lease=LONG), story.named(), OWNER)
    assert len(begun.batches) == 1
    other = repair_feed(story.services(), story.named(), OTHER)
    assert not other.batches
    assert all(begun.batches[0].batch_id in each.reason for each in other.plan.not_mended)


def test_a_finding_that_is_closed_is_not_repaired_again(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    [number, *_] = standing(story)
    repair_feed(story.services(), story.named(), OWNER)
    with pytest.raises(RepairRefused, match=f"finding {number} is remedied already"):
        repair_feed(story.services(), (number,), OWNER)
    with pytest.raises(RepairRefused, match="has no finding 999"):
        repair_feed(story.services(), (999,), OWNER)


def test_an_ingest_run_finishes_a_repair_that_was_killed(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    [plan] = begin_repair(story.services(), story.named(), OWNER).batches
    land_feed(story.services(), None, OTHER)
    status = story.services().ledger.batch(plan.batch_id)
    assert status.state is BatchState.PUBLISHED
    assert story.published_offsets() == ALL
    assert reconcile(story.services()).findings == ()
    assert standing(story) == []


def test_a_new_generation_is_opened_on_the_operators_word_only(story: Story) -> None:
    for log in story.broker.logs.values():
        log.cut(12)
    land_feed(story.services(), None, OWNER)
    numbers = standing(story)
    assert len(numbers) == 2
    unasked = repair_feed(story.services(), (), OWNER)
    assert all("on your word only" in each.reason for each in unasked.plan.not_mended)
    report = repair_feed(story.services(), numbers[:1], OWNER)
    assert list(report.closed) == numbers[:1]
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 6)
    land_feed(story.services(), None, OWNER)
    generations = story.services().ledger.generations(FEED)
    assert [each.ordinal for each in generations[0]] == [1, 2]
    assert [each.ordinal for each in generations[1]] == [1]
    assert generations[0][1].first_offset == 12
    assert generations[0][1].frontier == 18


@pytest.mark.parametrize(
    ("harm", "after"),
    [(Path.unlink, False), (damage, True)],
    ids=["missing, before each effect", "damaged, after each"],
)
def test_killed_at_any_effect_the_next_repair_ends_it(
    story: Story, harm: Callable[[Path], object], after: bool
) -> None:
    """Nothing lost, nothing doubled, whatever line it died at; one victim after another.

    A death just before an effect leaves what one just after the last effect leaves.
    """
    for at in range(80):
        harm(files(story)[0])
        reconcile(story.services())
        countdown = Countdown(at, after=after)
        try:
            repair_feed(story.services(countdown), story.named(), OWNER)
        except Crash:
            report = repair_feed(story.services(), story.named(), OTHER)
            assert not report.errors, (at, countdown.seen[-1])
        else:
            assert at > 10
            return
        assert reconcile(story.services()).findings == (), (at, countdown.seen[-1])
        assert story.published_offsets() == ALL, (at, countdown.seen[-1])
        assert story.staged() == [], (at, countdown.seen[-1])
        assert standing(story) == []
    raise AssertionError("the repair never came to its end")


def test_two_repairs_of_one_file_are_one(story: Story) -> None:
    files(story)[0].unlink()
    reconcile(story.services())
    [mine] = begin_repair(story.services(lease=LONG), story.named(), OWNER).batches
    rival = replace(mine, batch_id=BatchId("f" * 16))
    with (
        pytest.raises(ClaimConflict),
        story.services().ledger.planning(FEED, "orders") as session,
    ):
        session.freeze(None, [rival], [], owner=OTHER, lease=LONG)
