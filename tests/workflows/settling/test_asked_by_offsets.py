"""What an attempt of another batch has read is asked, too, before its offsets are called lost."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BrokerUnavailable
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out, land_feed, settle_and_plan
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    SECOND,
    TWO,
    expire,
    kept_in,
    landed,
    lost,
    next_run,
    quarantined,
    record_proof,
    release_claims,
)
from tests.support.effects import Countdown, Crash
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story


class Silent:
    """A broker that does not answer to one question."""

    def __init__(self, story: Story, question: str) -> None:
        self._broker, self._question = story.broker, question

    def __getattr__(self, name: str) -> object:
        return self._no_answer if name == self._question else getattr(self._broker, name)

    def _no_answer(self, *asked: object, **more: object) -> None:
        raise BrokerUnavailable("scripted", "no answer")


def halved(story: Story, *, is_proven: bool = False) -> Attempt:
    """A batch whose two attempts have landed it, and whose files were not there when the plan that
    halved it asked them; now they are.
    """
    first = landed(story)
    if is_proven:
        record_proof(story.services(), first)
    [adopted] = plan_feed(story.services(), None, ONE).adopted
    assert land_batch(story.services(), adopted.batch_id, SECOND, ONE)
    staging = story.directory / "landing" / "_staging"
    if not is_proven:
        # Only the first attempt's files are whole.
        [file] = staging.rglob(f"{SECOND}/data/*.parquet")
        file.write_bytes(file.read_bytes()[:-7])
    away = staging / "away"
    (staging / first.batch_id).rename(away)
    assert len(plan_feed(story.services(), None, TWO).batches) == 2
    away.rename(staging / first.batch_id)
    assert story.services().ledger.batch(first.batch_id).state is BatchState.ABANDONED
    return first


@pytest.mark.parametrize("is_proven", [False, True], ids=["whole", "proven"])
def test_what_an_attempt_of_a_halved_batch_holds_is_committed_before_it_is_lost(
    story: Story, is_proven: bool
) -> None:
    halved(story, is_proven=is_proven)
    expire(story)

    report = next_run(story)

    assert not report.findings
    assert not report.errors
    assert len(report.plan.rescued) == 1
    assert lost(story) == set()
    assert story.published_offsets() == ALL
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


@pytest.mark.parametrize(
    ("is_proven", "after"),
    [(False, False), (True, True)],
    ids=["whole files, before each effect", "proven ones, after each"],
)
def test_whoever_dies_while_files_are_claimed_again_loses_nothing(
    ledger_databases: Callable[[], str], tmp_path: Path, is_proven: bool, after: bool
) -> None:
    for at in range(100):
        story = a_landed_story(ledger_databases(), tmp_path / str(at), 10)
        for log in story.broker.logs.values():
            log.append(Kind.RECORD, 10)
            if is_proven:  # nobody can prove this hole again
                log.entries[14].kind = Kind.CONTROL
        halved(story, is_proven=is_proven)
        expire(story)
        countdown = Countdown(at, after)
        with suppress(Crash):
            settle_and_plan(story.services(countdown), None, TWO)

        report = next_run(story)

        assert not report.errors, countdown.seen
        assert lost(story) == set(), countdown.seen
        rows = [each for each in range(25) if each != 14 or not is_proven]
        assert story.published_offsets() == {0: rows, 1: rows}, countdown.seen
        assert story.staged() == [], countdown.seen
        if not countdown.is_dead:
            break
    assert "rename_exclusive" in countdown.seen


def test_a_look_does_not_call_lost_what_the_next_run_commits(story: Story) -> None:
    halved(story)
    expire(story)

    for found in (dry_run(story.services(), None).findings, reconcile(story.services()).findings):
        assert {each.verdict for each in found} == {Verdict.UNKNOWN}
    assert story.staged(), "nothing was changed"
    assert not next_run(story).findings


def test_what_was_released_and_is_claimed_by_nobody_is_asked_too(story: Story) -> None:
    """The half of a partition without a leader is in no new batch."""
    halved(story)
    release_claims(story)
    expire(story)

    assert not next_run(story).findings
    assert story.published_offsets() == ALL


def test_files_that_are_partly_landed_otherwise_are_named_with_the_loss(story: Story) -> None:
    first = halved(story)
    [healthy] = [
        each.plan
        for each in story.services().ledger.accounts(FEED).unfinished
        if each.plan.ranges[0].offsets.partition.partition == 0
    ]
    assert carry_out(story.services(), healthy.batch_id, TWO).directory
    expire(story)

    report = next_run(story)

    assert lost(story) == {(1, 10, 20)}
    where = f"/landing/_quarantine/orders/unproven/batch={first.batch_id}/attempt="
    assert kept_in(report) == {where + FIRST, where + SECOND}
    assert all(where in each.next_step for each in report.findings)
    assert len(quarantined(story)) == 2
    assert story.staged() == []


def test_what_was_quarantined_for_other_offsets_is_named(story: Story) -> None:
    first = halved(story)
    [file] = (story.directory / "landing" / "_staging").rglob(f"{FIRST}/data/*.parquet")
    file.write_bytes(file.read_bytes()[:-7])
    for number in (0, 1):
        story.broker.logs[number].append(Kind.RECORD, 5)
        story.broker.logs[number].log_start_offset = 20
        report = settle_and_plan(story.services(), None, TWO)
        sweep(story.services())

        assert len(quarantined(story)) == 2
        [found] = report.findings
        where = f"/landing/_quarantine/orders/unproven/batch={first.batch_id}/attempt="
        assert (found.partition, found.evidence["kept"]) == (
            number,
            [where + FIRST, where + SECOND],
        )


def test_files_that_can_not_be_proven_are_named_and_asked_once(story: Story) -> None:
    halved(story)
    [file] = (story.directory / "landing" / "_staging").rglob(f"{FIRST}/data/*.parquet")
    file.write_bytes(file.read_bytes()[:-7])
    expire(story)

    report = next_run(story)

    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert len(kept_in(report)) == 2
    assert len(quarantined(story)) == 2
    assert story.staged() == []
    assert not next_run(story).plan.findings


def test_files_that_nobody_can_ask_now_are_not_lost(story: Story) -> None:
    for log in story.broker.logs.values():
        log.entries[19].kind = Kind.CONTROL
    halved(story)
    expire(story, 15)
    services = story.services()

    land_feed(replace(services, broker=Silent(story, "explain_holes")), None, TWO)  # type: ignore[arg-type]

    assert lost(story) == set()
    found = reconcile(replace(services, broker=Silent(story, "explain_holes"))).findings  # type: ignore[arg-type]
    assert Verdict.PROVEN_LOSS not in {each.verdict for each in found}
    assert not next_run(story).findings
    assert [each for each in ALL[0] if each != 19] == story.published_offsets()[0]


def test_nothing_is_lost_while_the_attempts_of_the_halves_can_not_be_asked(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A half that is landed itself keeps its claim while its own attempt can't be asked."""
    halved(story)
    for number, each in enumerate(story.services().ledger.accounts(FEED).unfinished):
        attempt_id = AttemptId(f"{number + 7:016x}")
        assert land_batch(story.services(), each.plan.batch_id, attempt_id, TWO)
    expire(story)
    services = story.services()

    with suppress(BrokerUnavailable):
        settle_and_plan(replace(services, broker=Silent(story, "records_at")), None, TWO)  # type: ignore[arg-type]
    assert lost(story) == set()
    assert not next_run(story).findings
    assert story.published_offsets() == ALL


@pytest.mark.parametrize("is_grown", [False, True], ids=["truncated", "overwritten"])
def test_a_cut_names_the_files_of_attempts_that_held_what_was_cut(
    story: Story, is_grown: bool
) -> None:
    attempt = landed(story)
    for log in story.broker.logs.values():
        log.cut(5 if is_grown else 12)
        if is_grown:
            log.append(Kind.RECORD, 30, value=b"other")

    report = next_run(story)

    names = {each.name for each in report.findings}
    assert names == {"overwritten" if is_grown else "truncated"}
    place = f"/landing/_quarantine/orders/unproven/batch={attempt.batch_id}/attempt={FIRST}"
    assert kept_in(report) == {place}
    assert all(place in each.next_step for each in report.findings)
    sweep(story.services())
    assert len(quarantined(story)) == 1


def test_a_cut_of_which_nobody_holds_anything_names_no_files(story: Story) -> None:
    for log in story.broker.logs.values():
        log.cut(5)

    assert kept_in(next_run(story)) == set()
