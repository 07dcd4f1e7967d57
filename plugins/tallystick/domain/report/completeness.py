"""Complete up to when: the instant before which everything is proven to be landed.

A look is a broker snapshot on record. Everything that could be read before it was taken lies below
the highest high watermark that it or an earlier look showed: its own, unless the log was cut, or
its leader lags. So a partition is complete up to a look when none of these is above the clean
prefix of its log. What replicas lacked then was not readable: nothing is said of it.

A feed that lands by windows is complete by record time: a look then stands for the end of the
newest window that was over, and where the time index says that it lies for the high watermark.

1. The clean prefix ends at the frontier, or where the first failing finding begins. What is
   committed and not published yet is such a one, whoever holds it: no reader sees it.
2. A failing finding without an interval leaves nothing of its log clean, one without a partition
   nothing of the feed: unknown, never complete. One of a lost manifest, or of a reconcile that is
   overdue, holds nothing back.
3. A log is clean only behind earlier logs of its partition that are clean to their ends.
4. The feed is complete up to the least of its partitions.
5. A look with a doubt proves nothing, and still shows what is short. So does one whose machine has
   a clock ahead of the ledger's: nobody knows which of both is right.
6. A stopped log is clean up to its cut at most, even if two people have accepted what was cut: what
   it has held since is landed by nobody.
7. That something was not seen is no proof that it was not there: a look that does not list a
   partition proves nothing of it, unless it is of another topic, and the partition's logs are over.
8. A proof has a beginning. Where a log begins above offset 0, what was readable before the feed's
   first look may lie below that: unknown.
9. A witness that is overdue is a silent one: a look proves nothing that is newer than storage's
   silence, or than its last answer by two days.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.report.looks import Look, LookPlace
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding
from tallystick.domain.rules.n1_overdue import NO_RECONCILE
from tallystick.domain.rules.n3_unfinished_batch import NO_MANIFEST
from tallystick.domain.rules.rule import Trait
from tallystick.domain.verdicts import Verdict

# What the first has landed was proven at its commit, and is where readers look; of the second each
# look has its own doubt.
_HOLD_NOTHING_BACK: Final = {NO_MANIFEST, NO_RECONCILE}


@dataclass(frozen=True, slots=True)
class CleanPrefix:
    """How much of one log is in order: everything below `until_offset`."""

    until_offset: int | None
    """Excluded; None where nothing can be said."""
    blocked_by: Finding | None = None
    """What ends it; None when it only has not been landed further."""
    worst: Finding | None = None
    """The worst of what holds the log back: `blocked_by`, or a worse one behind it."""
    seen_until: int = 0
    """How far any look has seen the log reach (excluded)."""

    @property
    def is_whole(self) -> bool:
        """True when all that any look has seen of the log is clean."""
        return self.until_offset is not None and self.until_offset >= self.seen_until


@dataclass(frozen=True, slots=True)
class PartitionCompleteness:
    """What is proven of one partition."""

    partition: int
    up_to: datetime | None
    """The newest look below which all is proven; None without one."""
    short_at: datetime | None
    """The oldest look after it that showed more than the clean prefix; None when there is none."""
    blocked_by: Finding | None
    doubt: str | None = None
    """Why the newest look after it that might have proven more does not; None without such one."""
    worst: Finding | None = None
    """The worst of what holds it back; None where `blocked_by` is."""


class CompleteBy(StrEnum):
    """Which records an instant parts: those before it are proven to be landed."""

    READABLE = "readable"
    """What was readable before it."""
    RECORD_TIME = "record time"
    """What a log had, when the instant's window was looked at, before its first record that is as
    late: what comes late goes into a later window."""


class Proof(StrEnum):
    """If everything up to an instant is proven."""

    PROVEN = "proven"
    NOT_PROVEN = "not proven"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Completeness:
    """What is proven of a feed."""

    partitions: tuple[PartitionCompleteness, ...] = ()
    newest_look_at: datetime | None = None
    blocked_by: Finding | None = None
    """A failing finding that names no partition."""
    began_at: datetime | None = None
    """When the feed's first look was; None where all of its logs begin with their first offset."""
    by: CompleteBy = CompleteBy.READABLE

    @property
    def up_to(self) -> datetime | None:
        """The least of all partitions; None while one of them has no proof."""
        instants = [each.up_to for each in self.partitions if each.up_to is not None]
        if self.blocked_by or not instants or len(instants) < len(self.partitions):
            return None
        least = min(instants)
        return None if self.began_at and least < self.began_at else least

    def proof_of(self, instant: datetime) -> Proof:
        """If everything before the instant is proven to be landed; see `CompleteBy`."""
        if self.began_at is not None and instant < self.began_at:
            return Proof.UNKNOWN
        if self.up_to is not None and instant <= self.up_to:
            return Proof.PROVEN
        # Readable before a look that is not later than the instant, and not clean.
        short = any(
            each.short_at is not None
            and each.short_at <= instant
            and (each.blocked_by is None or each.blocked_by.verdict is not Verdict.UNKNOWN)
            for each in self.partitions
        )
        known_bad = self.blocked_by and self.blocked_by.verdict is not Verdict.UNKNOWN
        return Proof.NOT_PROVEN if short or known_bad else Proof.UNKNOWN

    def holding_back(self, instant: datetime) -> tuple[PartitionCompleteness, ...]:
        """The partitions that are not proven up to the instant, the furthest behind first."""
        behind = [each for each in self.partitions if each.up_to is None or each.up_to < instant]
        return tuple(
            sorted(behind, key=lambda each: (each.up_to is not None, each.up_to, each.partition))
        )


Proving = Sequence[tuple[datetime, Sequence[LookPlace]]]
"""Instants, and the looks that may prove them, in the order in which these began."""


def proving_looks(places: Sequence[LookPlace]) -> tuple[CompleteBy, Proving]:
    """By what the feed is complete, as the newest look says, and which instants may be proven, the
    newest first: by record time windows' ends, else the looks' own.

    A window that was not over, by the ledger's clock, is proven by none.
    """
    if not places or places[-1].border_at is None:
        return CompleteBy.READABLE, [(each.looked_at, (each,)) for each in reversed(places)]
    found: dict[datetime, list[LookPlace]] = {}
    for each in places:
        if each.border_at and each.border_at <= each.looked_at:
            found.setdefault(each.border_at, []).append(each)
    return CompleteBy.RECORD_TIME, sorted(found.items(), reverse=True)


def clean_prefixes(
    generations: Mapping[int, Sequence[GenerationAccount]],
    findings: Iterable[Finding],
    by: CompleteBy,
) -> dict[int, dict[str, CleanPrefix]]:
    """By partition and topic id; generations of one topic id are one log, oldest first.

    By record time an open log need not be clean up to where it was seen to reach.
    """
    failing: dict[int, list[Finding]] = {}
    for each in findings:
        if each.partition is None:
            continue
        if each.verdict in FAILING_VERDICTS or _stops(each, generations.get(each.partition, ())):
            failing.setdefault(each.partition, []).append(each)
    return {
        partition: _prefixes_of(accounts, failing.get(partition, ()), by)
        for partition, accounts in generations.items()
    }


def would_hold_back(found: Finding, generations: Mapping[int, Sequence[GenerationAccount]]) -> bool:
    """True for a finding that ends what is clean, unless people accept it.

    One that begins at a frontier or beyond ends nothing: as much as is landed is clean.
    """
    if found.verdict not in FAILING_VERDICTS:
        return False
    if found.partition is None:
        return found.name not in _HOLD_NOTHING_BACK
    accounts = generations.get(found.partition, ())
    frontier = max((each.frontier for each in accounts), default=0)
    return found.from_offset is None or found.from_offset < frontier


def _stops(each: Finding, accounts: Sequence[GenerationAccount]) -> bool:
    """True for the cut with which the partition's newest life has stopped, waived or not."""
    return (
        each.rule.has(Trait.CUT)
        and bool(accounts)
        and accounts[-1].state is GenerationState.STOPPED
        and each.generation == accounts[-1].ordinal
    )


def _prefixes_of(
    accounts: Sequence[GenerationAccount], failing: Sequence[Finding], by: CompleteBy
) -> dict[str, CleanPrefix]:
    newest = accounts[-1]
    goes_on = by is CompleteBy.RECORD_TIME and newest.state is GenerationState.OPEN
    logs: dict[str, list[GenerationAccount]] = {}
    for each in accounts:
        logs.setdefault(each.topic_id, []).append(each)
    found: dict[str, CleanPrefix] = {}
    broken: CleanPrefix | None = None
    for topic_id, lives in logs.items():
        if broken:
            found[topic_id] = CleanPrefix(None, broken.blocked_by, broken.worst)
            continue
        ordinals = {each.ordinal for each in lives}
        mine = [each for each in failing if each.generation is None or each.generation in ordinals]
        # Where a log was cut, the finding says how far it was seen to reach before.
        cut = [each.until_offset or 0 for each in mine if each.rule.has(Trait.CUT)]
        ended = (each for each in lives if each is not newest or not goes_on)
        seen_until = max([0, *cut, *(each.last_seen_until for each in ended)])
        prefix = found[topic_id] = replace(_prefix(lives[-1], mine), seen_until=seen_until)
        if not prefix.is_whole:
            broken = prefix
    return found


def _prefix(newest: GenerationAccount, failing: Sequence[Finding]) -> CleanPrefix:
    held = [
        each for each in failing if each.from_offset is None or each.from_offset < newest.frontier
    ]
    if not held:
        return CleanPrefix(newest.frontier)
    worst_first = sorted(held, key=lambda each: -each.verdict.severity)
    first = min(worst_first, key=lambda each: -1 if each.from_offset is None else each.from_offset)
    is_worst = first.verdict is worst_first[0].verdict
    return CleanPrefix(first.from_offset, first, first if is_worst else worst_first[0])


@dataclass(slots=True)
class _Search:
    """One partition, while looks are read from the newest to the oldest."""

    logs: Mapping[str, CleanPrefix]
    up_to: datetime | None = None
    short_at: datetime | None = None
    blocked_by: Finding | None = None
    worst: Finding | None = None
    doubt: str | None = None
    shown_until: dict[str, int] = field(default_factory=dict)
    """By topic id, how far the looks that were read have seen the log reach (excluded)."""
    is_over: bool = False
    """True when the partition has no log any more, and all that its logs ever showed is clean."""
    was_shown: bool = False

    def is_proven_without(self, look: Look, partition: int) -> bool:
        """True when a look that does not show the partition is the answer."""
        if look.doubt:
            self.doubt = self.doubt or look.doubt
        elif partition in look.leaderless:
            return False
        elif self.is_over and not self.was_shown and look.topic_id not in self.logs:
            self.up_to = look.looked_at
            return True
        return False

    def is_proven_by(self, look: Look, high_watermark: int) -> bool:
        """True when this look is the answer; else what it showed is noted.

        Where a look has seen more than is clean, an earlier one may have: all are read then.
        """
        self.was_shown = True
        shown_until = max(high_watermark, self.shown_until.get(look.topic_id, 0))
        self.shown_until[look.topic_id] = shown_until
        prefix = self.logs.get(look.topic_id, _UNPLANNED if self.logs else _NOTHING_READ)
        if prefix.until_offset is None or high_watermark > prefix.until_offset:
            # What was readable before it was so before every newer look, too.
            self.up_to = None
            if prefix is _UNPLANNED and high_watermark == 0:
                self.doubt = self.doubt or look.doubt or _ANOTHER_LOG
            else:
                self.short_at = look.looked_at
                self.blocked_by, self.worst = prefix.blocked_by, prefix.worst
            return False
        if look.doubt:
            self.doubt = self.doubt or look.doubt
            return False
        self.up_to = self.up_to or look.looked_at
        return prefix.is_whole


# A log that no plan has looked at: only one that never held a record is complete, and only where
# it has taken no other log's place.
_NOTHING_READ: Final = CleanPrefix(0)
_UNPLANNED: Final = CleanPrefix(None)
_ANOTHER_LOG: Final = "the look proves nothing, for it showed another log, and no plan has seen it."


@dataclass(slots=True)
class _Searches:
    logs: Mapping[int, Mapping[str, CleanPrefix]]
    waiting: dict[int, _Search] = field(default_factory=dict)
    done: dict[int, _Search] = field(default_factory=dict)

    def look(self, look: Look) -> None:
        shown = dict(zip(look.partitions, look.high_watermarks, strict=True))
        for partition in (*shown, *look.leaderless):
            if partition not in self.done and partition not in self.waiting:
                self.waiting[partition] = _Search(self.logs.get(partition, {}))
        for partition, search in list(self.waiting.items()):
            high_watermark = shown.get(partition)
            if high_watermark is None:
                is_proven = search.is_proven_without(look, partition)
            else:
                is_proven = search.is_proven_by(look, high_watermark)
            if is_proven:
                self.done[partition] = self.waiting.pop(partition)


def completeness_of(
    generations: Mapping[int, Sequence[GenerationAccount]],
    findings: Sequence[Finding],
    looks: Iterable[Look],
    first_look_at: datetime | None = None,
    by: CompleteBy = CompleteBy.READABLE,
) -> Completeness:
    """What the looks prove, those first that began last; they are read no further than needed.

    `generations` are all lives of each partition, oldest first. By record time the looks say what
    they prove of a window, those of the newest one first.
    """
    logs = clean_prefixes(generations, findings, by)
    searches = _Searches(
        logs,
        {
            partition: _Search(prefixes, is_over=_is_over(generations[partition], prefixes))
            for partition, prefixes in logs.items()
        },
    )
    newest: datetime | None = None
    for look in looks:
        newest = newest or look.looked_at
        searches.look(look)
        if not searches.waiting:
            break
    for search in searches.waiting.values():
        # An earlier look than all that were read showed more than is clean, who knows when.
        if any(
            not log.is_whole and search.shown_until.get(topic_id, 0) < log.seen_until
            for topic_id, log in search.logs.items()
        ):
            search.up_to = None
    everything = {**searches.waiting, **searches.done}
    wide = [
        each for each in findings if each.partition is None and each.name not in _HOLD_NOTHING_BACK
    ]
    return Completeness(
        partitions=tuple(
            PartitionCompleteness(
                partition, each.up_to, each.short_at, each.blocked_by, each.doubt, each.worst
            )
            for partition, each in sorted(everything.items())
        ),
        newest_look_at=newest,
        blocked_by=_worst_failing(wide),
        began_at=first_look_at
        if any(accounts[0].first_offset for accounts in generations.values())
        else None,
        by=by,
    )


def _is_over(accounts: Sequence[GenerationAccount], logs: Mapping[str, CleanPrefix]) -> bool:
    """True when the newest log is gone, and every log clean up to where it was seen to reach."""
    return accounts[-1].state is GenerationState.CLOSED and _are_whole(logs)


def _are_whole(logs: Mapping[str, CleanPrefix]) -> bool:
    return all(each.is_whole for each in logs.values())


def _worst_failing(findings: Sequence[Finding]) -> Finding | None:
    failing = [each for each in findings if each.verdict in FAILING_VERDICTS]
    return max(failing, key=lambda each: each.verdict.severity, default=None)
