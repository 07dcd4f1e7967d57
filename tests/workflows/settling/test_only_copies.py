"""Invariant 9: nothing is deleted that may be the only copy, and nothing is lost unasked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.batches.states import BatchState
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import AttemptFenced, SourceChanged
from tallystick.ports.spark_runner import LandingOrder
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed, settle_and_plan
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    SECOND,
    THREE,
    TWO,
    a_half_landed_story,
    blind,
    expire,
    kept_in,
    landed,
    lost,
    next_run,
    quarantined,
    record_proof,
)
from tests.support.effects import Countdown, Crash
from tests.support.scripted_broker import Kind, ScriptedSpark
from tests.support.story import FEED, Story
from tests.support.waivers import accept


def test_what_was_verified_is_committed_when_the_log_has_it_no_more(story: Story) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    expire(story)
    report = next_run(story)
    assert not report.findings
    assert not report.errors
    assert [each.batch_id for each in report.plan.rescued] == [attempt.batch_id]
    assert story.published_offsets() == ALL
    assert lost(story) == set()
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_what_was_landed_is_proven_and_committed_when_the_log_has_it_no_more(
    story: Story,
) -> None:
    landed(story)
    expire(story)
    report = next_run(story)
    assert not report.findings
    assert not report.errors
    assert story.published_offsets() == ALL
    assert lost(story) == set()
    assert story.staged() == []


def test_a_proof_counts_although_a_newer_attempt_has_begun_and_failed(story: Story) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    [adopted] = plan_feed(story.services(), None, TWO).adopted
    expire(story)
    with pytest.raises(SourceChanged):
        land_batch(story.services(), adopted.batch_id, SECOND, TWO)
    sweep(story.services())
    assert not next_run(story).findings
    assert story.published_offsets() == ALL


def test_an_attempt_that_wakes_up_after_it_was_taken_over_changes_nothing(story: Story) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    [adopted] = plan_feed(story.services(), None, TWO).adopted
    expire(story)
    with pytest.raises(SourceChanged):
        land_batch(story.services(), adopted.batch_id, SECOND, TWO)
    settle_and_plan(story.services(), None, THREE)
    with pytest.raises(AttemptFenced):
        verify_and_commit(story.services(), attempt)
    with pytest.raises(AttemptFenced):
        story.services().ledger.commit(attempt)
    next_run(story)
    assert story.published_offsets() == ALL


def test_an_attempt_that_wakes_up_where_nothing_was_newer_finds_its_own_commit(
    story: Story,
) -> None:
    attempt = landed(story)
    expire(story)
    settle_and_plan(story.services(), None, THREE)
    assert verify_and_commit(story.services(), attempt) is None
    next_run(story)
    assert story.published_offsets() == ALL


def test_an_end_that_nobody_can_prove_is_lost_and_the_rest_is_committed(story: Story) -> None:
    story.broker.logs[0].append(Kind.CONTROL, 1)
    landed(story)
    expire(story, 21)
    report = next_run(story)
    assert {(each.code, each.partition, each.from_offset) for each in report.findings} == {
        (FindingCode.EXPIRED, 0, 20),
        (FindingCode.EXPIRED, 1, 20),
    }
    assert lost(story) == {(0, 20, 21), (1, 20, 21)}
    assert story.published_offsets()[0] == [*range(20), *range(21, 26)]


def test_what_can_not_be_proven_is_quarantined_and_named(story: Story) -> None:
    attempt = landed(story)
    [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-7])
    expire(story)
    report = next_run(story)
    place = f"/landing/_quarantine/orders/unproven/batch={attempt.batch_id}/attempt={FIRST}"
    assert kept_in(report) == {place}
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert all(place in each.next_step for each in report.findings)
    assert [each.name for each in quarantined(story)] == [file.name]
    assert story.staged() == []


@pytest.mark.parametrize("after", [False, True], ids=["before each effect", "after each"])
def test_whoever_dies_while_files_are_given_up_loses_no_file(
    ledger_databases: Callable[[], str], tmp_path: Path, after: bool
) -> None:
    for at in range(100):
        story = a_half_landed_story(ledger_databases(), tmp_path / str(at))
        landed(story)
        [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
        file.write_bytes(file.read_bytes()[:-7])
        expire(story)
        countdown = Countdown(at, after)
        with suppress(Crash):
            settle_and_plan(story.services(countdown), None, TWO)

        report = next_run(story)

        assert not report.errors, countdown.seen
        assert lost(story) == {(0, 10, 20), (1, 10, 20)}, countdown.seen
        assert [each.name for each in quarantined(story)] == [file.name], countdown.seen
        assert story.staged() == [], countdown.seen
        if not countdown.is_dead:
            break
    assert "rename_exclusive" in countdown.seen


def test_an_unproven_offset_between_rows_is_quarantined_with_them(story: Story) -> None:
    story.broker.logs[0].entries[14].kind = Kind.CONTROL
    landed(story)
    expire(story)
    report = next_run(story)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert len(kept_in(report)) == 1
    assert len(quarantined(story)) == 1


def test_an_attempt_that_wrote_nothing_is_deleted(story: Story) -> None:
    services = story.services()
    [batch] = plan_feed(services, None, ONE).all_batches
    services.ledger.begin_attempt(batch.batch_id, attempt_id=FIRST, owner=ONE, lease=timedelta(0))
    services.store.write(StagingPath.of(batch, FIRST).plan, b"{}")
    expire(story)
    report = next_run(story)
    assert kept_in(report) == set()
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert story.staged() == []


def test_what_a_re_created_topic_left_verified_is_committed(story: Story) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    story.broker.recreate()
    report = next_run(story)
    assert story.services().ledger.batch(attempt.batch_id).state is BatchState.PUBLISHED
    assert {each.verdict for each in report.findings} == {Verdict.UNKNOWN}
    assert lost(story) == set()


def test_what_a_re_created_topic_left_unproven_is_quarantined(story: Story) -> None:
    landed(story)
    story.broker.recreate()
    report = next_run(story)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert len(kept_in(report)) == 1
    assert len(quarantined(story)) == 1


def test_what_was_read_of_a_log_before_it_was_cut_is_quarantined(story: Story) -> None:
    landed(story)
    for log in story.broker.logs.values():
        log.cut(5)
    next_run(story)
    sweep(story.services())
    assert len(quarantined(story)) == 1
    assert story.staged() == []


def test_complete_files_stay_until_their_batch_is_published(story: Story) -> None:
    attempt = landed(story)
    services = story.services()
    [adopted] = plan_feed(services, None, TWO).adopted
    services.ledger.begin_attempt(
        adopted.batch_id, attempt_id=SECOND, owner=TWO, lease=timedelta(0)
    )
    assert sweep(services) == 0
    assert any(attempt.attempt_id in each for each in story.staged())
    next_run(story)
    assert story.staged() == []
    assert quarantined(story) == []


def test_an_older_whole_attempt_stays_for_nobody_has_read_the_newer_one(story: Story) -> None:
    landed(story, FIRST, ONE)
    newer = landed(story, SECOND, TWO)
    [file] = (story.directory / "landing" / "_staging").rglob(f"*{newer.attempt_id}*.parquet")
    file.write_bytes(file.read_bytes()[:-7])  # no listing tells that its last block is lost
    sweep(story.services())
    expire(story)
    assert not next_run(story).findings
    assert story.published_offsets() == ALL
    assert lost(story) == set()
    assert story.staged() == []


def test_a_dry_run_does_not_call_lost_what_a_run_would_commit(story: Story) -> None:
    attempt = landed(story)
    expire(story)
    told = dry_run(story.services(), None).findings
    assert {each.verdict for each in told} == {Verdict.UNKNOWN}
    assert all(str(attempt.attempt_id) in each.cause for each in told)
    assert lost(story) == set()


def test_a_reconcile_does_not_call_lost_what_the_next_run_commits(story: Story) -> None:
    landed(story)
    expire(story)
    report = reconcile(story.services())
    assert Verdict.PROVEN_LOSS not in {each.verdict for each in report.findings}
    assert not next_run(story).findings


def test_a_repair_whose_offsets_expire_is_committed_from_what_it_landed(story: Story) -> None:
    next_run(story)
    file = story.services().ledger.files(FEED)[0]
    for each in (story.directory / "landing" / FEED).rglob(file.file.name):
        each.unlink()
    reconcile(story.services())
    [batch] = begin_repair(story.services(), story.named(), ONE).batches
    land_batch(story.services(), batch.batch_id, FIRST, ONE)
    expire(story)
    report = next_run(story)
    assert [each.batch_id for each in report.plan.rescued] == [batch.batch_id]
    assert story.published_offsets() == ALL


def proven_repair_of_a_file_that_was_put_back(story: Story) -> Attempt:
    """The log has lost the file's first five offsets when the repair reads it; then the file is put
    back. The repair died just before its commit.
    """
    next_run(story)
    name = story.services().ledger.files(FEED)[0].file.name
    [path] = (story.directory / "landing" / FEED).rglob(name)
    content = path.read_bytes()
    path.unlink()
    for log in story.broker.logs.values():
        log.log_start_offset = 5
    reconcile(story.services())
    [batch] = begin_repair(story.services(), story.named(), ONE).batches
    attempt = land_batch(story.services(), batch.batch_id, FIRST, ONE)
    assert attempt
    record_proof(story.services(), attempt)
    path.write_bytes(content)
    return attempt


def test_a_repair_that_was_verified_takes_no_row_of_a_file_that_was_put_back(story: Story) -> None:
    attempt = proven_repair_of_a_file_that_was_put_back(story)
    expire(story)
    assert not dry_run(story.services(), None).rescued
    report = next_run(story)
    assert not report.plan.rescued
    assert not report.errors
    assert lost(story) == set()
    assert story.published_offsets() == ALL
    assert story.services().ledger.batch(attempt.batch_id).state is BatchState.ABANDONED
    assert len(quarantined(story)) == 1
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_a_rebuild_enters_no_verified_repair_that_takes_rows(
    story: Story, ledger_databases: Callable[[], str]
) -> None:
    attempt = proven_repair_of_a_file_that_was_put_back(story)
    rebuilt = replace(story, dsn=ledger_databases())
    report = rebuild(rebuilt.services())
    [left_out] = report.left_out
    assert left_out.batch_id == attempt.batch_id
    assert "holds rows that the log has no more" in " ".join(left_out.reasons)
    assert lost(rebuilt) == set()
    assert rebuilt.published_offsets() == {0: list(range(20)), 1: list(range(20))}
    assert reconcile(rebuilt.services()).verdict is Verdict.PROVEN_OK


def test_a_proof_stays_although_a_newer_attempt_is_whole(story: Story) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    [adopted] = plan_feed(story.services(), None, TWO).adopted
    land_batch(story.services(), adopted.batch_id, SECOND, TWO)
    sweep(story.services())
    assert any(each.endswith(f"{FIRST}/data/_tally.json") for each in story.staged())
    for log in story.broker.logs.values():
        log.epoch += 1
    expire(story)
    next_run(story)
    assert lost(story) == set()
    assert story.published_offsets() == ALL


def test_what_an_earlier_attempt_has_read_stays_when_spark_can_not_read_it_again(
    story: Story,
) -> None:
    landed(story)
    [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-7])  # nobody can prove it
    for _ in range(2):
        land_feed(blind(story), None, TWO)
    assert any(each.endswith(".parquet") for each in story.staged())
    expire(story)
    next_run(story)
    sweep(story.services())
    assert lost(story) == {(0, 13, 14)}
    assert len(quarantined(story)) == 1
    assert story.staged() == []


def test_what_is_given_up_as_unreadable_names_the_files_that_may_hold_it(story: Story) -> None:
    landed(story)
    [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-7])
    for _ in range(2):
        land_feed(blind(story), None, TWO)
    ledger = story.services().ledger
    [told] = ledger.findings(FEED)
    accept(ledger, told.finding_id)
    next_run(story)
    sweep(story.services())
    assert lost(story) == {(0, 13, 14)}
    [kept] = quarantined(story)
    [place] = told.finding.evidence["kept"]  # type: ignore[misc]
    assert f"{kept.parent.parent}" == f"{story.directory}{place}"
    assert place in told.finding.next_step


class SparkThatIsTooLate(ScriptedSpark):
    """The log start passes some offsets while a landing reads."""

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        self._broker.logs[0].log_start_offset = 15
        super().run(order, started=started)

    def _failure(self, plan: LandingPlan) -> str | None:
        logs = self._broker.logs
        is_late = any(
            each.from_offset < logs[each.partition.partition].log_start_offset
            for each in plan.ranges
        )
        return "OffsetOutOfRange" if is_late else None


def test_what_expires_while_it_is_looked_for_is_not_set_aside(story: Story) -> None:
    landed(story)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    services = story.services()
    spark = SparkThatIsTooLate(story.broker, services.store)
    report = land_feed(replace(services, spark=spark), None, TWO)
    assert FindingCode.UNREADABLE_RECORD not in {each.code for each in report.findings}
    assert not next_run(story).findings
    assert story.published_offsets() == ALL
    assert lost(story) == set()
