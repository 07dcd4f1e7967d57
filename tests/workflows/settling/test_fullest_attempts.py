"""Whole attempts at a compacted topic, whose cleaner ran between them: the fullest counts."""

from __future__ import annotations

import pytest

from tallystick.domain.identities import AttemptId, BatchId
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.planning.plan import plan_feed
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    SECOND,
    expire,
    kept_in,
    lost,
    next_run,
    quarantined,
)
from tests.support.scripted_broker import Kind
from tests.support.story import Story


@pytest.fixture(autouse=True)
def _is_compacted(story: Story) -> None:
    story.broker.is_compacted = True


def clean(story: Story, until_offset: int) -> None:
    for log in story.broker.logs.values():
        for entry in log.entries[10:until_offset]:
            entry.kind = Kind.COMPACTED


def planned(story: Story) -> BatchId:
    [batch] = plan_feed(story.services(), None, ONE).all_batches
    return batch.batch_id


def land(story: Story, batch_id: BatchId, attempt_id: AttemptId) -> None:
    assert land_batch(story.services(), batch_id, attempt_id, ONE)


@pytest.mark.parametrize("ids", [(FIRST, SECOND), (SECOND, FIRST)])
def test_the_fullest_attempt_is_committed(story: Story, ids: tuple[AttemptId, AttemptId]) -> None:
    batch = planned(story)
    land(story, batch, ids[0])
    clean(story, 13)
    land(story, batch, ids[1])
    expire(story)
    assert not next_run(story).findings
    assert lost(story) == set()
    assert story.published_offsets() == ALL


def test_a_loss_of_the_fullest_attempt_names_the_other_one(story: Story) -> None:
    batch = planned(story)
    clean(story, 12)
    land(story, batch, SECOND)
    clean(story, 13)
    land(story, batch, FIRST)
    expire(story)
    report = next_run(story)
    assert lost(story) == {(0, 10, 12), (1, 10, 12)}
    assert kept_in(report) == {
        f"/landing/_quarantine/orders/unproven/batch={batch}/attempt={FIRST}"
    }
    assert len(quarantined(story)) == 1
