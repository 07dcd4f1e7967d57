"""Waivers: two people accept a finding as it is stated now, for a time.

1. A waiver is of one finding: its code, its exact interval, and its evidence. So whatever makes a
   finding worse makes it another one, or changes its evidence; all that may grow under a waiver is
   time, and a log behind what is told.
2. It is void when it expires, when the evidence changes, and when one person ends it: then the
   finding is open again. Offsets that were given up by it stay lost.
3. A waived finding is told as WAIVED; it neither fails a run nor holds back completeness.
4. What is accepted is what was read: a waiver names the digest of the evidence that both people had
   before them, and is refused when it is another one by then.
5. One command may name both people. Where each of them is signed in, one asks and another approves,
   and what is asked for never changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from itertools import groupby
from typing import Final
from unicodedata import category, normalize

from tallystick.domain.rules.evidence import (
    HELD_IN,
    NULL_IF_NOT_ASKED,
    held_in,
    path_not_asked,
)
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict

LATEST_END: Final = datetime(9999, 1, 1, tzinfo=UTC)
"""Excluded. What ends later could be kept but not read again, in a time zone or the other."""

# When it was seen, for how long or how often it has been so, who the log says it was, if it can be
# asked, and in which words a witness refused to tell: a later look changes these by itself.
_CHANGING: Final = frozenset(
    {"seen_at", "seen_first_at", "seconds", "producer_id", "failures", "said"}
)


_FEW: Final = 3


def still_to_come(end: datetime, now: datetime) -> datetime:
    """The end; ValueError, with what is accepted, for one that is past or too late to be kept."""
    if end <= now:
        raise ValueError("an instant that is still to come")
    if end >= LATEST_END:
        raise ValueError(f"an instant before {LATEST_END:%Y-%m-%d}")
    return end


@dataclass(frozen=True, slots=True)
class Waiver:
    """What two people have accepted."""

    finding_id: int
    reason: str
    asked_by: str
    approved_by: str
    """Somebody else."""
    expires_at: datetime
    """Excluded: from then on the finding is open again."""
    digest: str
    """Of the evidence that both have read, as `shown_digest` gives it."""


@dataclass(frozen=True, slots=True)
class WaiverEnding:
    """One person has ended a waiver before its time."""

    reason: str
    ended_by: str
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverWish:
    """What one person asks for."""

    finding_id: int
    reason: str
    asked_by: str
    expires_at: datetime
    """Excluded."""
    digest: str
    """Of the evidence that was read, as `shown_digest` gives it."""

    def approved(self, by: str) -> Waiver:
        """The waiver that somebody else's word makes of it."""
        return Waiver(self.finding_id, self.reason, self.asked_by, by, self.expires_at, self.digest)


class RequestEnding(StrEnum):
    """What became of a request for a waiver."""

    APPROVED = "approved"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"
    """It was void, and somebody asked anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverRequest:
    """A wish on record."""

    number: int
    wish: WaiverWish
    asked_at: datetime
    has_expired: bool
    """True from the end of what it asks for."""
    ending: RequestEnding | None = None
    """None while nobody has ended it."""
    ended_by: str | None = None
    ended_at: datetime | None = None

    def may_be_approved(self, digest: str) -> bool:
        """True while it stands for the evidence of this digest, and its end is to come."""
        return self.ending is None and not self.has_expired and self.wish.digest == digest

    def was_asked_with(self, other: WaiverRequest) -> bool:
        """True for the requests of one trouble's findings, which one person makes at once."""
        mine, its = (self.asked_at, self.wish.asked_by), (other.asked_at, other.wish.asked_by)
        return mine == its


def asked_at_once(requests: Iterable[WaiverRequest]) -> Iterator[Sequence[WaiverRequest]]:
    """The requests, those together that one person has made at once, as they came."""
    for _, several in groupby(requests, lambda each: (each.asked_at, each.wish.asked_by)):
        yield tuple(several)


def is_same_person(one: str, another: str) -> bool:
    """True for two names that only blanks around them, capitals or ways to write them tell apart.

    An accent may be a character of its own, a letter may be wide, and some characters show nothing.

    >>> is_same_person("Ada", " ada"), is_same_person("Ada", "Grace")
    (True, False)
    """
    return _as_person(one) == _as_person(another)


def _as_person(name: str) -> str:
    shown = "".join(each for each in normalize("NFKC", name) if category(each) != "Cf")
    return normalize("NFKC", shown.casefold()).strip()


def as_accepted(
    findings: Iterable[Finding], accepted: Collection[tuple[object, ...]]
) -> list[Finding]:
    """The findings in their order, those with an accepted key as WAIVED."""
    return [
        replace(each, verdict=Verdict.WAIVED) if each.key in accepted else each for each in findings
    ]


def as_far_as_asked(found: Finding, standing: Iterable[Finding]) -> Finding:
    """The finding; the one on record where a part of its evidence could not be asked.

    Only while all else is as it was on record: who has accepted that has accepted this.
    """
    unasked = {each: None for each in NULL_IF_NOT_ASKED if found.evidence.get(each, "") is None}
    is_elsewhere = path_not_asked(found.evidence) is not None
    known = next((each for each in standing if each.key == found.key), None)
    if known is None or not (unasked or is_elsewhere):
        return found
    is_as_before = is_elsewhere or {**known.evidence, **unasked} == found.evidence
    return known if is_as_before else found


def evidence_digest(evidence: Mapping[str, object]) -> bytes:
    """SHA-256 of the evidence as JSON, without what every look changes by itself.

    Of what attempts may hold it is that of their directories: what the log has changes with each
    look, and so do the words of a refusal.

    >>> evidence_digest({"b": 1, "a": 2}) == evidence_digest({"a": 2, "b": 1, "seconds": 7})
    True
    """
    kept = {name: value for name, value in evidence.items() if name not in _CHANGING}
    reasons = held_in(evidence)
    if reasons is not None:
        kept = {HELD_IN: sorted(reasons)}
    return sha256(json.dumps(kept, sort_keys=True).encode()).digest()


def shown_digest(evidence: Mapping[str, object]) -> str:
    """The evidence's digest as people read and copy it: short, for it guards against a mix-up only.

    >>> shown_digest({"length_bytes": 0})
    'ff39e8c1'
    """
    return shortened(evidence_digest(evidence))


def as_read(digest: str, read: Collection[str]) -> str:
    """The digest if it is one of those that were read; else words for these, which are no digest.

    >>> as_read("aa", ["aa", "bb"]), as_read("cc", ["aa", "bb"])
    ('aa', 'aa, bb')
    """
    if digest in read:
        return digest
    return ", ".join(read) if len(read) <= _FEW else f"one of the {len(read)} that were read"


def shortened(digest: bytes) -> str:
    """The first characters of a digest, as they are shown."""
    return digest.hex()[:8]
