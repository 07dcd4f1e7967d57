"""Who may take a batch: adopt it with a plan, or begin an attempt at it.

The ledger asks under the lock of the batch's row, and a dry run asks of what the ledger says. The
statement `adopt_batches` guards the same rule against a race; tests/contract holds the two equal.
Who may take claims away from a batch is another question: `BatchStatus.is_held` answers it.
"""

from __future__ import annotations

from enum import Enum

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import FencingToken, Owner


def is_free_for(owner: Owner | None, holder: Owner | None, lease_seconds_left: float) -> bool:
    """True unless the lease of another owner runs; None for who stands for no owner.

    What this very owner holds was taken by a try of this run that died.
    """
    return lease_seconds_left <= 0 or (owner is not None and holder == owner)


def may_be_adopted(batch: BatchStatus, owner: Owner | None) -> bool:
    """True for an unfinished batch that no living attempt of another owner holds.

    Files are given up on the word of a person who looked at them just then: nobody takes that over.
    """
    is_free = is_free_for(owner, batch.holder, batch.lease_seconds_left)
    return batch.state.is_unfinished and is_free and not batch.plan.is_give_up


class Beginning(Enum):
    """What becomes of an attempt that asks for a batch."""

    FENCED = "a newer attempt has the batch"
    OVER = "nothing is left to land"
    AGAIN = "it is the newest, and needs no new token: whoever finds its files may commit them"
    BUSY = "another owner's lease runs"
    NEW = "it gets the next token"


def beginning(
    state: BatchState, newest_token: FencingToken, known: FencingToken | None, *, is_free: bool
) -> Beginning:
    """The answer to an attempt whose token is `known`; None for one that the ledger never saw."""
    if known is not None and known != newest_token:
        return Beginning.FENCED
    if not state.is_unfinished:
        return Beginning.OVER
    if known is not None:
        return Beginning.AGAIN
    return Beginning.NEW if is_free else Beginning.BUSY
