"""What the broker said right after the read stands when nobody can tell any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.batches.log_answer import LogAnswer
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BrokerUnavailable, VerificationFailed
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    a_half_landed_story,
    expire,
    kept_in,
    landed,
    lost,
    next_run,
)
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    return a_half_landed_story(ledger_databases(), tmp_path)


def another_leader(story: Story) -> None:
    for log in story.broker.logs.values():
        log.epoch += 1


def answers(story: Story) -> list[Path]:
    return sorted((story.directory / "landing" / "_staging").rglob("log.json"))


def test_whole_files_are_proven_although_the_epoch_of_their_read_has_expired(story: Story) -> None:
    landed(story)
    another_leader(story)
    expire(story)

    report = next_run(story)

    assert not report.errors
    assert lost(story) == set()
    assert story.published_offsets() == ALL
    told = {(each.code, each.verdict) for each in report.findings}
    assert told == {(FindingCode.LOG_CUT, Verdict.UNKNOWN)}, "the next batch's log is in doubt"
    assert reconcile(story.services()).verdict is Verdict.UNKNOWN


def test_the_verifying_task_rests_on_it_too(story: Story) -> None:
    attempt = landed(story)
    another_leader(story)
    expire(story)

    assert verify_and_commit(story.services(), attempt)


def test_the_anchor_is_the_landed_row_where_the_log_can_not_be_judged(story: Story) -> None:
    attempt = landed(story)
    another_leader(story)
    expire(story)
    verify_and_commit(story.services(), attempt)

    account = story.services().ledger.accounts(FEED).generations[0]
    assert account.anchor is not None
    assert (account.anchor.offset, account.anchor.leader_epoch) == (19, None)


def test_a_hole_is_not_proven_by_an_answer_from_before_it_was_asked(story: Story) -> None:
    story.broker.logs[0].entries[14].kind = Kind.CONTROL
    landed(story)
    another_leader(story)
    expire(story)

    report = next_run(story)

    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    assert len(kept_in(report)) == 1


def test_a_cut_that_shows_is_believed_and_not_the_answer_before_it(story: Story) -> None:
    attempt = landed(story)
    for log in story.broker.logs.values():
        log.cut(15)
        log.append(Kind.RECORD, 20, value=b"other")

    with pytest.raises(VerificationFailed, match="the log was cut during the read, at 15"):
        verify_and_commit(story.services(), attempt)


def test_a_log_that_was_cut_before_the_application_ended_is_vouched_for_by_nobody(
    story: Story,
) -> None:
    services = story.services()

    def cut() -> None:
        for log in story.broker.logs.values():
            log.cut(15)
            log.append(Kind.RECORD, 20, value=b"other")

    [batch] = plan_feed(services, None, ONE).all_batches
    spark = Meanwhile(services.spark, cut, method="run")
    land_batch(replace(services, spark=spark), batch.batch_id, FIRST, ONE)  # type: ignore[arg-type]

    [path] = answers(story)
    assert LogAnswer.from_json(path.read_text()).same == ()


def test_a_broker_that_is_away_right_after_the_read_fails_no_landing(story: Story) -> None:
    services = story.services()

    class Away:
        is_away = False

        def __getattr__(self, name: str) -> object:
            if self.is_away:
                raise BrokerUnavailable("scripted", "no answer")
            return getattr(story.broker, name)

    broker = Away()
    [batch] = plan_feed(services, None, ONE).all_batches
    spark = Meanwhile(services.spark, lambda: setattr(broker, "is_away", True), method="run")
    attempt = land_batch(
        replace(services, broker=broker, spark=spark),  # type: ignore[arg-type]
        batch.batch_id,
        FIRST,
        ONE,
    )

    assert attempt
    assert answers(story) == []
    assert verify_and_commit(story.services(), attempt)


def test_an_answer_of_another_life_of_the_topic_vouches_for_nothing(story: Story) -> None:
    landed(story)
    [path] = answers(story)
    plan = story.services().ledger.accounts(FEED).unfinished[0].plan
    answer = LogAnswer.from_json(path.read_text())

    assert all(answer.vouches_for(plan, each.offsets) for each in plan.ranges)
    other = replace(plan, topic_id="another")
    assert not any(answer.vouches_for(other, each.offsets) for each in plan.ranges)
