"""A batch that can't be asked now what its attempts hold keeps its claims, and stops no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batch import Attempt, BatchPlan
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.states import Verdict
from tallystick.errors import StorageRefused
from tallystick.workflows import asking
from tallystick.workflows.landing import land_batch
from tallystick.workflows.planning import dry_run, plan_feed
from tallystick.workflows.reconciliation import reconcile
from tallystick.workflows.run import land_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind
from tests.support.story import Story, a_landed_story
from tests.workflows.test_only_copies import (
    ALL,
    SECOND,
    THREE,
    TWO,
    expire,
    landed,
    lost,
    next_run,
    record_proof,
)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records of two partitions are landed, ten more are readable."""
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    return story


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
    real = asking.take_over

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
        patched.setattr(asking, "take_over", racing)
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
