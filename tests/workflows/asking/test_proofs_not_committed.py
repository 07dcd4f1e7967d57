"""Attempts hold what could be committed, and it could not: told as that, and nothing is moved."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tallystick.domain.identities import AttemptId
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.errors import AttemptNotAsked, BrokerUnavailable, StorageRefused
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
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
from tests.workflows.asking.test_attempts_nobody_can_ask import of_attempts, staged_at, standing
from tests.workflows.asking.test_copies_of_missing_files import FIRST, Twice, known_to_be_missing
from tests.workflows.asking.test_copies_of_missing_files import twice as twice

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


def test_a_repair_whose_rows_may_be_elsewhere_names_the_directory_that_nobody_could_ask(
    twice: Twice,
) -> None:
    staging = a_proven_repair(twice)

    plan_feed(unreadable(twice.story, FIRST, LISTS), None, TWO)

    [said] = of_attempts(twice.story)
    directory = f"/landing/_staging/{twice.batch_id}/{FIRST}"
    assert said.subject == directory
    assert f"hdfs dfs -mv {directory} {twice.quarantined}" in said.next_step
    assert staging not in str(said)
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


def test_files_that_can_not_be_committed_are_told_without_a_move(story: Story) -> None:
    attempt = landed(story)
    expire(story)

    plan_feed(write_protected(story), None, TWO)

    assert lost(story) == set()
    [said] = of_attempts(story)
    assert said.subject == f"/landing/_staging/{attempt.batch_id}", "whatever attempt has them"
    assert said.verdict is Verdict.UNKNOWN
    assert "could not be committed" in said.cause
    assert "The NameSpace quota is exceeded" in said.cause
    assert StorageRefused.next_step in said.next_step
    assert "hdfs" not in said.next_step
    told = [each.finding for each in standing(story, FindingCode.EXPIRED)]
    assert {each.verdict for each in told} == {Verdict.UNKNOWN}

    report = next_run(story)
    assert len(report.plan.rescued) == 1
    assert not report.findings
    assert of_attempts(story) == []
    assert story.published_offsets() == ALL


def test_no_look_ends_what_a_plan_says_of_files_that_could_not_be_committed(story: Story) -> None:
    landed(story)
    expire(story)
    report = land_feed(write_protected(story), None, TWO)
    stands = {each.finding_id: each.finding.verdict for each in standing_all(story)}
    assert len(stands) == 3, "both partitions' offsets, and the directory"
    assert set(stands.values()) == {Verdict.UNKNOWN}
    assert {each.key for each in of_attempts(story)} <= {each.key for each in report.findings}

    for _ in range(2):
        assert reconcile(story.services()).verdict is Verdict.UNKNOWN
        land_feed(write_protected(story), None, TWO)

    assert {each.finding_id for each in standing_all(story)} == set(stands)
    assert not next_run(story).findings
    assert standing_all(story) == []


class AwayAfterTheLook:
    """A broker that shows its logs once, and is away when files are proven."""

    def __init__(self, broker: Any) -> None:
        self._broker, self._looks = broker, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._broker, name)

    def snapshot(self, topic: str) -> Any:
        self._looks += 1
        if self._looks > 1:
            raise BrokerUnavailable("scripted", "no answer")
        return self._broker.snapshot(topic)


def test_what_a_look_could_not_prove_the_next_look_tries_again(story: Story) -> None:
    attempt = landed(story)
    expire(story)
    away: Any = AwayAfterTheLook(story.broker)

    reconcile(replace(story.services(), broker=away))

    [said] = of_attempts(story)
    assert said.subject == f"/landing/_staging/{attempt.batch_id}"
    assert "nobody could ask" in said.cause, "nobody has tried to commit it"
    assert "was_asked" not in said.evidence
    assert "reconcile orders" in said.next_step
    assert {each.finding.verdict for each in standing_all(story)} == {Verdict.UNKNOWN}
    assert reconcile(story.services()).verdict is not Verdict.UNKNOWN
    assert of_attempts(story) == []


def standing_all(story: Story) -> list[StoredFinding]:
    return [
        each
        for code in (FindingCode.EXPIRED, FindingCode.COULD_NOT_TELL)
        for each in standing(story, code)
    ]
