"""The states of a batch and of a range, and the only steps between them.

One table, three times: here, in the ledger's schema, in docs/design.md; a test proves them equal.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class BatchState(StrEnum):
    """Where a batch stands."""

    PLANNED = "planned"
    LANDING = "landing"
    VERIFIED = "verified"
    COMMITTED = "committed"
    PUBLISHED = "published"
    ABANDONED = "abandoned"

    @property
    def is_unfinished(self) -> bool:
        """True while it can still be landed: it is neither committed nor given up."""
        return self in (BatchState.PLANNED, BatchState.LANDING, BatchState.VERIFIED)

    @property
    def is_over(self) -> bool:
        """True when nobody has anything to do with it any more."""
        return self in (BatchState.PUBLISHED, BatchState.ABANDONED)

    @property
    def is_committed(self) -> bool:
        """True from the commit on: the ledger owns the files."""
        return self in (BatchState.COMMITTED, BatchState.PUBLISHED)


# A newer attempt takes a batch from landing or verified back to landing: a new token, not a new
# state.
TRANSITIONS: Final[frozenset[tuple[BatchState, BatchState]]] = frozenset(
    {
        (BatchState.PLANNED, BatchState.LANDING),
        (BatchState.LANDING, BatchState.LANDING),
        (BatchState.VERIFIED, BatchState.LANDING),
        (BatchState.LANDING, BatchState.VERIFIED),
        (BatchState.VERIFIED, BatchState.VERIFIED),
        (BatchState.VERIFIED, BatchState.COMMITTED),
        (BatchState.COMMITTED, BatchState.PUBLISHED),
        (BatchState.PLANNED, BatchState.ABANDONED),
        (BatchState.LANDING, BatchState.ABANDONED),
        (BatchState.VERIFIED, BatchState.ABANDONED),
    }
)


class RangeState(StrEnum):
    """What is said of a range; no offset is claimed, committed, lost or unreadable twice."""

    CLAIMED = "claimed"
    COMMITTED = "committed"
    LOST = "lost"
    RELEASED = "released"
    RETRACTED = "retracted"
    """Committed once; a repair has committed these offsets again since."""
    UNREADABLE = "unreadable"
    """There, and Spark can't read it: no plan asks for it again until a person does."""


class CommitAnswer(StrEnum):
    """What a commit that did not raise says. Fenced and unknown are errors."""

    COMMITTED = "committed"
    ALREADY_COMMITTED = "already committed"


class HoleClass(StrEnum):
    """Why an offset of a landed range has no visible record."""

    CONTROL = "control"
    ABORTED = "aborted"
    COMPACTED = "compacted"


class Isolation(StrEnum):
    """Kafka's isolation level of a read."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"
