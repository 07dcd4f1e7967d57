"""An attempt whose files can't be read is named; all others are asked, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.rules.evidence import held_in
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import AttemptFenced, StorageUnavailable
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    SECOND,
    THREE,
    TWO,
    expire,
    kept_in,
    landed,
    lost,
    next_run,
    quarantined,
    record_proof,
)
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story
from tests.support.unreadable_store import LISTS, READS, unreadable
from tests.workflows.settling.test_copies_of_missing_files import Closed

A1, A5, U1 = FindingCode.EXPIRED, FindingCode.TOPIC_RECREATED, FindingCode.COULD_NOT_TELL
ANYWHERE = "/_staging"


def staged_at(attempt: Attempt) -> str:
    return f"/landing/_staging/{attempt.batch_id}/{attempt.attempt_id}"


def quarantined_at(attempt: Attempt) -> str:
    place = f"batch={attempt.batch_id}/attempt={attempt.attempt_id}"
    return f"/landing/_quarantine/orders/unproven/{place}"


def quarantine(story: Story, attempt: Attempt) -> None:
    """What the finding's next step says, done by hand."""
    source, target = (
        story.directory / path(attempt).lstrip("/") for path in (staged_at, quarantined_at)
    )
    target.parent.mkdir(parents=True)
    source.rename(target)


def standing(story: Story, code: FindingCode) -> list[StoredFinding]:
    return [each for each in story.services().ledger.findings(FEED) if each.finding.code is code]


def told_of(story: Story) -> set[str]:
    """The directories that findings on record name as held."""
    return {
        path
        for each in story.services().ledger.findings(FEED)
        for path in held_in(each.finding.evidence) or ()
    }


def landed_again(story: Story) -> None:
    """A second attempt of the same batch has read it all, too, and is not proven."""
    [adopted] = plan_feed(story.services(), None, TWO).adopted
    assert land_batch(story.services(), adopted.batch_id, SECOND, TWO)


@pytest.mark.parametrize("questions", [READS, LISTS], ids=["its blocks", "its directory"])
def test_an_attempt_that_can_not_be_read_is_named_with_the_way_out(
    story: Story, questions: frozenset[str]
) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    expire(story)

    report = land_feed(unreadable(story, FIRST, questions), None, TWO)

    assert lost(story) == set()
    assert told_of(story) == {staged_at(attempt)}
    told = [each.finding for each in standing(story, A1)]
    assert {each.key for each in told} == {each.key for each in report.findings}, "the run fails"
    assert {(each.verdict, each.from_offset, each.until_offset) for each in told} == {
        (Verdict.UNKNOWN, 10, 20)
    }
    assert {each.partition for each in told} == {0, 1}
    for each in told:
        assert f"attempts may hold them: {staged_at(attempt)}" in each.cause
        assert "Could not obtain block" in each.cause
        assert "tallystick repair orders NUMBER" in each.next_step
    assert story.published_offsets()[0] == [*range(10), *range(20, 25)], "landing goes on"


def test_the_look_that_can_ask_ends_what_was_said_of_it(story: Story) -> None:
    record_proof(story.services(), landed(story))
    expire(story)
    land_feed(unreadable(story, FIRST), None, TWO)
    numbers = {each.finding_id for each in standing(story, A1)}
    assert len(numbers) == 2

    assert not next_run(story).findings

    assert story.published_offsets() == ALL
    assert not standing(story, A1)
    ended = [story.services().ledger.finding(each) for each in numbers]
    assert all(each and each.state is FindingState.REMEDIED for each in ended)
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_one_attempt_that_can_not_be_read_hides_no_other_of_its_batch(story: Story) -> None:
    landed(story)
    landed_again(story)
    expire(story)

    report = land_feed(unreadable(story, FIRST), None, THREE)

    assert len(report.plan.rescued) == 1
    assert lost(story) == set()
    assert story.published_offsets() == ALL


def test_no_end_is_given_up_while_an_attempt_that_may_hold_it_can_not_be_read(
    story: Story,
) -> None:
    """The second attempt can't prove its last offset; the first one holds a proof."""
    story.broker.logs[0].append(Kind.CONTROL, 1)
    first = landed(story)
    record_proof(story.services(), first)
    landed_again(story)
    expire(story, 21)

    land_feed(unreadable(story, FIRST), None, THREE)

    nobody_read = {(1, 20, 21)}
    assert lost(story) == nobody_read
    assert told_of(story) >= {f"/landing/_staging/{first.batch_id}/{FIRST}"}
    next_run(story)
    assert lost(story) == nobody_read
    assert story.published_offsets()[0] == [*range(20), *range(21, 26)]


def test_what_was_quarantined_is_named_with_the_loss_and_landing_goes_on(story: Story) -> None:
    attempt = landed(story)
    expire(story)
    land_feed(unreadable(story, FIRST, LISTS), None, TWO)
    quarantine(story, attempt)

    report = land_feed(unreadable(story, FIRST, LISTS), None, THREE)

    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert kept_in(report) == {quarantined_at(attempt)}
    assert len(quarantined(story)) == 1
    reconcile(unreadable(story, FIRST, LISTS))
    assert {each.finding.verdict for each in standing(story, A1)} == {Verdict.PROVEN_LOSS}


def test_a_new_log_waits_until_what_can_not_be_read_was_quarantined(story: Story) -> None:
    attempt = landed(story)
    record_proof(story.services(), attempt)
    story.broker.recreate()
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3, value=b"new")
    land_feed(unreadable(story, FIRST), None, TWO)
    assert told_of(story) == {staged_at(attempt)}
    assert lost(story) == set()
    assert len(story.published_offsets()[0]) == 10
    quarantine(story, attempt)

    report = land_feed(unreadable(story, FIRST), None, THREE)

    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert kept_in(report) == {quarantined_at(attempt)}
    assert len(story.published_offsets()[0]) == 10 + 3


def test_files_of_a_batch_that_claims_nothing_any_more_are_no_less_named(story: Story) -> None:
    """The directory says by itself what it may hold: its batch in the ledger does."""
    attempt = landed(story)
    record_proof(story.services(), attempt)
    hidden = story.directory / staged_at(attempt).lstrip("/")
    with_another_name = hidden.with_name("away")
    hidden.rename(with_another_name)
    expire(story)
    story.broker.logs[1].log_start_offset = 0
    next_run(story)
    assert lost(story) == {(0, 10, 20)}
    with_another_name.rename(hidden)
    story.broker.logs[1].log_start_offset = 25

    found = land_feed(unreadable(story, FIRST, LISTS), None, TWO)

    assert lost(story) == {(0, 10, 20)}, "partition 1 was landed meanwhile"
    assert U1 not in {each.code for each in found.findings}


def test_a_sweep_passes_what_can_not_be_read(story: Story) -> None:
    attempt = landed(story)
    landed_again(story)
    for log in story.broker.logs.values():
        log.cut(5)

    report = land_feed(unreadable(story, FIRST, LISTS), None, THREE)

    assert not report.errors
    assert [SECOND in str(each) for each in quarantined(story)] == [True]
    assert any(FIRST in each for each in story.staged())
    assert quarantined_at(attempt) in kept_in(report)
    sweep(story.services())
    assert len(quarantined(story)) == 2
    assert story.staged() == []


def test_a_sweep_ends_where_the_whole_file_system_is_silent(story: Story) -> None:
    landed(story)
    landed_again(story)
    for log in story.broker.logs.values():
        log.cut(5)
    plan_feed(story.services(), None, THREE)
    services, asked = story.services(), []

    class Silent:
        def __getattr__(self, question: str) -> Callable[[str], object]:
            def ask(path: str) -> object:
                asked.append(path)
                raise StorageUnavailable(path, "connection refused")

            return ask

    with pytest.raises(StorageUnavailable):
        sweep(replace(services, store=Silent()))  # type: ignore[arg-type]
    assert len(asked) == 2, "one attempt, and whether anything answers"


def test_a_staging_that_may_not_be_listed_stops_the_sweep_of_no_other_root(story: Story) -> None:
    batch_id = landed(story).batch_id
    land_feed(story.services(), None, TWO)
    left = story.directory / "landing" / "_staging" / batch_id / FIRST / "data"
    left.mkdir(parents=True)
    services = story.services()
    target = services.feed.target.model_copy(update={"root": "/elsewhere"})
    feed = services.feed.model_copy(update={"target": target})
    store: Any = Closed(services.store, "/elsewhere/_staging")
    assert sweep(replace(services, feed=feed, store=store)) == 1
    assert not left.exists()


def test_a_look_says_what_can_not_be_asked_and_calls_nothing_lost(story: Story) -> None:
    attempt = landed(story)
    expire(story)
    unknown = {(A1, Verdict.UNKNOWN)}

    for _ in range(2):
        found = reconcile(unreadable(story, FIRST)).findings
        assert {(each.code, each.verdict) for each in found} == unknown
    told = dry_run(unreadable(story, FIRST), None).findings
    assert {(each.code, each.verdict) for each in told} == unknown
    assert told_of(story) == {staged_at(attempt)}
    next_run(story)
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


@pytest.mark.parametrize("part", [ANYWHERE, "/landing"], ids=["staging", "all of HDFS"])
@pytest.mark.parametrize("level", [Level.L1, Level.L2])
def test_where_staging_is_silent_as_a_whole_nothing_is_called_lost(
    story: Story, part: str, level: Level
) -> None:
    """No batch claims these offsets: any directory of staging may hold them."""
    expire(story)

    report = reconcile(unreadable(story, part, LISTS), level)

    assert (A1, Verdict.UNKNOWN) in {(each.code, each.verdict) for each in report.findings}
    assert {each.verdict for each in report.findings} == {Verdict.UNKNOWN}
    assert told_of(story) == {"/landing/_staging"}
    found = reconcile(story.services()).findings
    assert {(each.code, each.verdict) for each in found} == {(A1, Verdict.PROVEN_LOSS)}


def test_a_quarantine_that_can_not_be_listed_stops_no_plan(story: Story) -> None:
    """Nobody asks there: the loss names it as a place where files may be kept."""
    expire(story)
    report = land_feed(unreadable(story, "/_quarantine", LISTS), None, TWO)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert kept_in(report) == {"/landing/_quarantine/orders/unproven"}
    assert story.published_offsets()[0] == [*range(10), *range(20, 25)]


def test_a_person_gives_up_by_the_findings_number_what_nobody_can_read(story: Story) -> None:
    attempt = landed(story)
    expire(story)
    services = unreadable(story, FIRST)
    reconcile(services)
    said, other = standing(story, A1)

    assert {each.finding_id for each in dry_repair(services, ()).plan.not_mended} == {
        said.finding_id,
        other.finding_id,
    }
    [step] = dry_repair(services, [said.finding_id]).plan.quarantined
    assert (step.path, step.quarantine) == (staged_at(attempt), quarantined_at(attempt))
    done = repair_feed(services, [said.finding_id], TWO)

    assert not done.failures
    assert said.finding_id in done.closed
    assert len(quarantined(story)) == 1
    with pytest.raises(AttemptFenced):
        story.services().ledger.commit(attempt)
    report = land_feed(services, None, THREE)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert kept_in(report) == {quarantined_at(attempt)}


def test_a_person_gives_up_nothing_that_can_be_committed(story: Story) -> None:
    landed(story)
    expire(story)
    reconcile(story.services())
    said, _ = standing(story, A1)

    done = repair_feed(story.services(), [said.finding_id], TWO)

    assert not done.failures
    assert quarantined(story) == []
    assert not next_run(story).findings
    assert story.published_offsets() == ALL
