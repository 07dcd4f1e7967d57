"""Who takes a batch in the ledger is who may, by `domain.batches.taking`: over all that a batch can
be.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product

from tallystick.domain.batches.batch import Attempt, BatchStatus, CommittedFile
from tallystick.domain.batches.states import BatchState, RangeState
from tallystick.domain.batches.taking import Beginning, beginning, is_free_for, may_be_adopted
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.planning.log_changes import CutClaim, LogChanges
from tallystick.errors import AttemptFenced, BatchBusy
from tests.support.ledger_story import FEED, MINUTE, NO_TIME, OWNER, RIVAL, LedgerStory

LEASES = [(OWNER, MINUTE), (RIVAL, MINUTE), (OWNER, NO_TIME)]
NEVER_SEEN = AttemptId("f" * 16)


def abandon(story: LedgerStory, batch: BatchStatus) -> None:
    [planned] = batch.plan.ranges
    cut = CutClaim(
        batch.plan.batch_id,
        planned.generation_id,
        planned.offsets,
        RangeState.RELEASED,
        FindingCode.SHORT_READ,
    )
    story.change(LogChanges(cuts=[cut]))


def a_batch(
    story: LedgerStory, start: int, state: BatchState, holder: Owner, lease: timedelta
) -> tuple[BatchStatus, list[Attempt]]:
    """A new batch in this state, and its attempts; the newest is the last."""
    batch_id = story.planned((0, start, start + 1), owner=holder, lease=lease)
    attempts: list[Attempt] = []
    if state is not BatchState.PLANNED:
        attempts = [story.begin(batch_id, owner=holder, lease=lease) for _ in range(2)]
    if state is BatchState.VERIFIED or state.is_committed:
        story.verify(attempts[-1])
    if state.is_committed:
        story.ledger.commit(attempts[-1])
    if state is BatchState.PUBLISHED:
        story.ledger.mark_published(batch_id)
    if state is BatchState.ABANDONED:
        abandon(story, story.status(batch_id))
    batch = story.status(batch_id)
    assert batch.state is state
    return batch, attempts


def a_give_up(
    story: LedgerStory, start: int, state: BatchState, holder: Owner, lease: timedelta
) -> BatchStatus:
    """A repair in this state that gives up a file of its own, and claims nothing."""
    landed = story.committed((0, start, start + 1))
    [file] = [each for each in story.ledger.files(FEED) if each.batch_id == landed.batch_id]
    plan = replace(story.batch_of(), replaces=(CommittedFile(file.batch_id, file.file.name),))
    story.freeze(plan, owner=holder, lease=lease)
    if state is not BatchState.PLANNED:
        attempt = story.begin(plan.batch_id, owner=holder, lease=lease)
    if state is BatchState.VERIFIED:
        story.verify(attempt)
    batch = story.status(plan.batch_id)
    assert batch.state is state
    assert batch.plan.is_give_up
    return batch


def begun(story: LedgerStory, batch: BatchStatus, known: Attempt | None, owner: Owner) -> Beginning:
    """What the ledger answers."""
    attempt_id = known.attempt_id if known else AttemptId(f"{batch.plan.batch_id[:15]}0")
    try:
        attempt = story.ledger.begin_attempt(
            batch.plan.batch_id, attempt_id=attempt_id, owner=owner, lease=MINUTE
        )
    except AttemptFenced:
        return Beginning.FENCED
    except BatchBusy:
        return Beginning.BUSY
    if attempt is None:
        return Beginning.OVER
    if attempt == known:
        return Beginning.AGAIN
    assert attempt.token == batch.newest_token + 1
    return Beginning.NEW


def test_an_attempt_begins_where_it_may(story: LedgerStory) -> None:
    story.open({0: (0, 1000)})
    told = set()
    drawn = product(BatchState, LEASES, (OWNER, RIVAL), (None, 0, -1))
    for start, (state, (holder, lease), owner, place) in enumerate(drawn):
        batch, attempts = a_batch(story, start, state, holder, lease)
        known = attempts[place] if attempts and place is not None else None
        is_free = is_free_for(owner, batch.holder, batch.lease_seconds_left)
        token = known.token if known else None

        answer = begun(story, batch, known, owner)

        assert answer is beginning(batch.state, batch.newest_token, token, is_free=is_free), batch
        told.add(answer)
    assert told == set(Beginning)


def test_a_plan_adopts_what_it_may(story: LedgerStory) -> None:
    story.open({0: (0, 1000)})
    told = set()
    for start, (state, (holder, lease), owner) in enumerate(
        product(BatchState, LEASES, (OWNER, RIVAL))
    ):
        batch, _ = a_batch(story, start, state, holder, lease)

        frozen = story.freeze(adopted=[batch.plan.batch_id], owner=owner)

        assert bool(frozen.adopted) == may_be_adopted(batch, owner), batch
        told.add(bool(frozen.adopted))
    assert told == {True, False}


def test_no_plan_adopts_files_that_are_given_up(story: LedgerStory) -> None:
    story.open({0: (0, 1000)})
    unfinished = [each for each in BatchState if each.is_unfinished]
    for start, (state, (holder, lease), owner) in enumerate(
        product(unfinished, LEASES, (OWNER, RIVAL))
    ):
        batch = a_give_up(story, start, state, holder, lease)

        frozen = story.freeze(adopted=[batch.plan.batch_id], owner=owner)

        assert not may_be_adopted(batch, owner)
        assert not frozen.adopted, batch


def test_an_attempt_is_told_as_it_was_begun(story: LedgerStory) -> None:
    story.open({0: (0, 1000)})
    _, [older, newest] = a_batch(story, 0, BatchState.LANDING, OWNER, MINUTE)

    assert [story.ledger.attempt(each.attempt_id) for each in (older, newest)] == [older, newest]
    assert story.ledger.attempt(NEVER_SEEN) is None
