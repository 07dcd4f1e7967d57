"""A batch that can't be asked now what its attempts hold keeps its claims, and stops no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageRefused
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tallystick.workflows.settling import settle as settling
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
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
    release_claims,
)
from tests.support.scripted_broker import Kind
from tests.support.story import Story


class RefusingStore:
    """No manifest can be written, or no directory renamed: the quota is used up."""

    def __init__(self, store: Any, refused: str) -> None:
        self._store, self._refused = store, refused

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, path: str, data: bytes) -> None:
        if path.endswith(self._refused):
            raise StorageRefused(path, "DSQuotaExceededException")
        self._store.write(path, data)

    def rename_exclusive(self, source: str, target: str) -> None:
        if self._refused == "rename":
            raise StorageRefused(source, "AccessControlException")
        self._store.rename_exclusive(source, target)


_READS = {"checksum", "read_back", "read_back_file", "read_range", "landed_record_hash"}


class BlocksMissing:
    """A store that hands out nothing of one attempt: its blocks are away for a while."""

    def __init__(self, store: Any, attempt_id: AttemptId) -> None:
        self._store, self._attempt_id = store, attempt_id

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return partial(self._read, found) if name in _READS else found

    def _read(self, read: Callable[..., Any], path: str, *more: Any, **named: Any) -> Any:
        if self._attempt_id in path:
            raise StorageRefused(path, "BlockMissingException")
        return read(path, *more, **named)


def blocks_missing(story: Story) -> Services:
    services = story.services()
    return replace(services, store=BlocksMissing(services.store, FIRST))


def recreate(story: Story) -> None:
    """The topic is made again, and three records are produced to each partition."""
    story.broker.recreate()
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3, value=b"new")


def refusing(story: Story, refused: str) -> Services:
    services = story.services()
    return replace(services, store=RefusingStore(services.store, refused))


@pytest.mark.parametrize("tries", [1, 2])
def test_nothing_is_lost_when_the_storage_refuses_the_proof(story: Story, tries: int) -> None:
    landed(story)
    if tries == 2:
        [adopted] = plan_feed(story.services(), None, TWO).adopted
        land_batch(story.services(), adopted.batch_id, SECOND, TWO)
    expire(story)
    for _ in range(2):
        land_feed(refusing(story, "_tally.json"), None, THREE)
        assert lost(story) == set()
    assert not next_run(story).findings
    assert story.published_offsets() == ALL


def test_nothing_is_lost_when_a_proof_can_not_be_renamed(story: Story) -> None:
    record_proof(story.services(), landed(story))
    [adopted] = plan_feed(story.services(), None, TWO).adopted
    story.services().ledger.begin_attempt(
        adopted.batch_id, attempt_id=SECOND, owner=TWO, lease=timedelta(0)
    )
    expire(story)
    land_feed(refusing(story, "rename"), None, THREE)
    assert lost(story) == set()
    assert not next_run(story).findings
    assert story.published_offsets() == ALL


def test_nothing_is_lost_when_another_run_was_at_it_for_a_moment(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    landed(story)
    expire(story)
    real = settling.take_over

    def racing(services: Services, plan: BatchPlan, old: AttemptId, owner: Owner) -> Attempt | None:
        ledger = story.services().ledger
        other = ledger.begin_attempt(
            plan.batch_id, attempt_id=SECOND, owner=TWO, lease=timedelta(minutes=1)
        )
        assert other
        try:
            return real(services, plan, old, owner)
        finally:
            ledger.record_failure(other, "SourceChanged")

    with monkeypatch.context() as patched:
        patched.setattr(settling, "take_over", racing)
        next_run(story)
    assert lost(story) == set()
    assert not next_run(story).findings
    assert story.published_offsets() == ALL


@pytest.mark.parametrize("needs_headers", [False, True])
def test_a_partition_without_a_leader_stops_no_other_plan(
    story: Story, needs_headers: bool
) -> None:
    if needs_headers:
        story.broker.logs[1].append(Kind.CONTROL, 1)
    landed(story)
    expire(story)
    story.broker.leaderless = {1}
    next_run(story)
    assert story.published_offsets()[0] == [*range(10), *range(20, 25)]
    assert lost(story) == set()
    dry_run(story.services(), None)
    assert Verdict.PROVEN_LOSS not in {
        each.verdict for each in reconcile(story.services()).findings
    }
    story.broker.leaderless = set()
    next_run(story)
    assert story.published_offsets()[0] == ALL[0]
    assert lost(story) == set()


@pytest.mark.parametrize("is_claimed", [True, False], ids=["claimed", "released"])
def test_a_proof_that_can_not_be_read_when_its_topic_is_made_again_is_committed_later(
    story: Story, is_claimed: bool
) -> None:
    record_proof(story.services(), landed(story))
    if not is_claimed:
        release_claims(story)
    recreate(story)
    foreseen = reconcile(blocks_missing(story)).findings
    for _ in range(2):
        [*findings] = land_feed(blocks_missing(story), None, TWO).findings
        assert {(each.code, each.verdict) for each in (*foreseen, *findings)} == {
            (FindingCode.TOPIC_RECREATED, Verdict.UNKNOWN),
        }
        assert any("attempts may hold them" in each.cause.lower() for each in findings)
        assert lost(story) == set()
        assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}
    assert Verdict.PROVEN_LOSS not in {each.verdict for each in next_run(story).findings}
    assert lost(story) == set()
    both_logs = sorted([*range(20), *range(3)])
    assert story.published_offsets() == {0: both_logs, 1: both_logs}
    final = reconcile(story.services())
    assert {(each.code, each.verdict) for each in final.findings} == {
        (FindingCode.TOPIC_RECREATED, Verdict.UNKNOWN)
    }
    assert not any("may hold" in each.cause for each in final.findings)


def test_files_that_nobody_can_prove_any_more_hold_up_no_new_log(story: Story) -> None:
    landed(story)
    release_claims(story)
    recreate(story)
    report = land_feed(blocks_missing(story), None, TWO)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
    [place] = kept_in(report)
    assert any(place in str(each) for each in quarantined(story))
    assert len(story.published_offsets()[0]) == 10 + 3


def test_a_log_that_waits_for_an_answer_holds_up_no_other(story: Story) -> None:
    first, second = plan_feed(story.services(max_partitions_per_batch=1), None, ONE).batches
    for batch, attempt_id in ((first, FIRST), (second, SECOND)):
        attempt = land_batch(story.services(), batch.batch_id, attempt_id, ONE)
        assert attempt
        record_proof(story.services(), attempt)
    recreate(story)
    land_feed(blocks_missing(story), None, TWO)
    both_logs = sorted([*range(20), *range(3)])
    assert story.published_offsets() == {0: list(range(10)), 1: both_logs}
    next_run(story)
    assert story.published_offsets() == {0: both_logs, 1: both_logs}
    assert lost(story) == set()
