"""What is said of an interval, and what becomes of the finding that says so."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class FindingState(StrEnum):
    """What became of a finding."""

    OPEN = "open"
    SUPERSEDED = "superseded"
    """The same trouble has another verdict now."""
    REMEDIED = "remedied"
    WAIVED = "waived"


class Verdict(StrEnum):
    """What reconciliation says of an interval, from harmless to worst."""

    PROVEN_OK = "PROVEN_OK"
    WAIVED = "WAIVED"
    SUSPECTED = "SUSPECTED"
    UNKNOWN = "UNKNOWN"
    PROVEN_DUP = "PROVEN_DUP"
    PROVEN_LOSS = "PROVEN_LOSS"

    @property
    def severity(self) -> int:
        """The greater, the worse: the order in which the verdicts are declared."""
        return list(Verdict).index(self)

    @classmethod
    def worst_of(cls, verdicts: Iterable[Verdict]) -> Verdict:
        """The verdict that weighs most, of one or more."""
        return max(verdicts, key=lambda each: each.severity)
