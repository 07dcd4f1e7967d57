"""Who may take a batch: by a plan that adopts it, or by an attempt at it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.taking import Beginning, beginning, is_free_for, may_be_adopted
from tallystick.domain.identities import FencingToken, Owner
from tests.support.builders import BATCH, a_status, planned

RUN, RIVAL = Owner("run 1"), Owner("run 2")


@pytest.mark.parametrize(
    ("holder", "seconds", "free_for"),
    [
        (None, 0.0, {RUN, RIVAL, None}),
        (RUN, 0.0, {RUN, RIVAL, None}),
        (RUN, -5.0, {RUN, RIVAL, None}),
        (RUN, 0.1, {RUN}),
        (None, 0.1, set()),
    ],
)
def test_a_batch_is_free_unless_the_lease_of_another_owner_runs(
    holder: Owner | None, seconds: float, free_for: set[Owner | None]
) -> None:
    found = {each for each in (RUN, RIVAL, None) if is_free_for(each, holder, seconds)}
    assert found == free_for


def test_a_plan_adopts_what_is_unfinished_and_free() -> None:
    living = a_status(planned(2, 4), lease_seconds_left=60.0)
    dead = a_status(planned(2, 4))

    assert may_be_adopted(dead, None)
    assert may_be_adopted(living, RUN), "an earlier try of this run holds it"
    assert not may_be_adopted(living, RIVAL)
    assert not may_be_adopted(living, None)
    assert not may_be_adopted(replace(dead, state=BatchState.COMMITTED), RUN)


def test_nobody_takes_over_that_a_person_gives_files_up() -> None:
    dead = a_status()
    give_up = replace(dead, plan=replace(dead.plan, replaces=(CommittedFile(BATCH, "a.parquet"),)))

    assert not may_be_adopted(give_up, RUN)


@pytest.mark.parametrize(
    ("state", "known", "is_free", "answer"),
    [
        (BatchState.PLANNED, None, True, Beginning.NEW),
        (BatchState.LANDING, None, True, Beginning.NEW),
        (BatchState.VERIFIED, None, True, Beginning.NEW),
        (BatchState.LANDING, None, False, Beginning.BUSY),
        (BatchState.LANDING, 3, True, Beginning.AGAIN),
        (BatchState.VERIFIED, 3, False, Beginning.AGAIN),
        (BatchState.LANDING, 2, True, Beginning.FENCED),
        (BatchState.LANDING, 2, False, Beginning.FENCED),
        (BatchState.COMMITTED, 2, True, Beginning.FENCED),
        (BatchState.COMMITTED, 3, True, Beginning.OVER),
        (BatchState.PUBLISHED, None, True, Beginning.OVER),
        (BatchState.ABANDONED, None, False, Beginning.OVER),
    ],
)
def test_what_becomes_of_an_attempt(
    state: BatchState, known: int | None, is_free: bool, answer: Beginning
) -> None:
    token = None if known is None else FencingToken(known)
    assert beginning(state, FencingToken(3), token, is_free=is_free) is answer
