"""Attempts hold what could be committed, and it could not: told as that, and nothing is moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tallystick.domain.identities import AttemptId
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import AttemptNotAsked, StorageRefused
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed, settle_and_plan
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair, repair_feed
from tallystick.workflows.services import Services
from tests.support.dying_attempts import (
    ALL,
    ONE,
    TWO,
    expire,
    landed,
    lost,
    next_run,
    record_proof,
)
from tests.support.story import Story
from tests.support.unreadable_store import LISTS, unreadable
from tests.workflows.settling.test_attempts_nobody_can_ask import staged_at, standing
from tests.workflows.settling.test_copies_of_missing_files import FIRST, Twice, known_to_be_missing
from tests.workflows.settling.test_copies_of_missing_files import twice as twice

THIRD = AttemptId("3" * 16)


class WriteProtected:
    """A store that can be read, and refuses what would take a directory to a new attempt."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, path: str, content: bytes) -> None:
        raise StorageRefused(path, "The NameSpace quota is exceeded")


def write_protected(story: Story) -> Services:
    services = story.services()
    return replace(services, store=WriteProtected(services.store))  # type: ignore[arg-type]


def a_proven_repair(twice: Twice) -> str:
    """It landed what the log had still, and gives up [10, 15); its staging directory."""
    twice.story.broker.logs[0].log_start_offset = 15
    known_to_be_missing(twice)
    services = twice.story.services()
    [batch] = begin_repair(services, twice.story.named(), ONE).batches
    attempt = land_batch(services, batch.batch_id, THIRD, ONE)
    assert attempt
    record_proof(services, attempt)
    twice.story.broker.logs[0].log_start_offset = 20
    return staged_at(attempt)


def test_a_repair_waits_while_a_directory_that_may_hold_its_rows_can_not_be_asked(
    twice: Twice,
) -> None:
    staging = a_proven_repair(twice)

    settle_and_plan(unreadable(twice.story, FIRST, LISTS), None, TWO)

    assert (twice.story.directory / staging.lstrip("/")).exists()
    assert lost(twice.story) == set()
    next_run(twice.story)
    assert twice.story.published_offsets() == {0: [*range(10), *range(15, 25)]}


def test_a_repair_that_fails_in_its_own_run_says_the_move_too(twice: Twice) -> None:
    known_to_be_missing(twice)

    report = repair_feed(unreadable(twice.story, FIRST, LISTS), twice.numbers, ONE)

    [error] = report.errors
    assert isinstance(error, AttemptNotAsked)
    assert f"hdfs dfs -mv /landing/_staging/{twice.batch_id}/{FIRST} {twice.quarantined}" in str(
        error
    )


def test_files_that_can_not_be_committed_stand_until_a_run_can(story: Story) -> None:
    attempt = landed(story)
    expire(story)

    for _ in range(2):
        report = land_feed(write_protected(story), None, TWO)
        assert lost(story) == set()
        assert {(each.code, each.verdict) for each in report.findings} == {
            (FindingCode.EXPIRED, Verdict.UNKNOWN)
        }
        reconcile(story.services())
    told = [each.finding for each in standing(story, FindingCode.EXPIRED)]
    assert len(told) == 2, "one for each partition, however often it is told"
    assert all(f"/{attempt.batch_id}/" in each.cause for each in told)

    report = next_run(story)
    assert len(report.plan.rescued) == 1
    assert not report.findings
    assert standing(story, FindingCode.EXPIRED) == []
    assert story.published_offsets() == ALL
