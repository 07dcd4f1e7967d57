"""Files under a readers' path that no committed batch owns: what they hold, and what is told.

1. A stray doubles only rows whose committed file is in its place, as it was committed.
2. Rows that no such file holds may be nowhere else: the stray is moved on a person's word only.
3. A stray that holds the rows of a missing file may be that file: nothing of it is called lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tallystick.domain.batches.states import Verdict
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import BoundedRuns
from tallystick.domain.rules.a9_stray_file import A9
from tallystick.domain.rules.b2_landed_twice import B2
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.storage_rules import SOLE_ROWS, generation_in, of_path
from tallystick.domain.rules.u1_could_not_tell import U1


@dataclass(frozen=True, slots=True)
class StrayFile:
    """A stray, and what it holds."""

    path: str
    held: Mapping[int, OffsetRuns] | None
    """Its offsets by partition; None where nobody can read what may be rows."""
    committed: Mapping[int, OffsetRuns] = field(default_factory=dict)
    """Which of them the ledger has as committed, whatever became of their files."""
    kept: Mapping[int, OffsetRuns] = field(default_factory=dict)
    """Which of them a committed file holds too, that is in its place as it was committed."""
    trouble: str | None = None
    """Why nobody could tell what it holds, or if a committed file holds that too."""
    length_bytes: int = 0
    changed_ms: int = 0
    """When it was written last, by the file system's clock: whoever writes it anew moves it."""

    @property
    def generation(self) -> int | None:
        """The generation in whose directory it lies."""
        return generation_in(self.path)

    @property
    def sole(self) -> dict[int, OffsetRuns]:
        """The offsets that no committed file holds, by partition."""
        return self._without(self.kept)

    @property
    def is_news_to_ledger(self) -> bool:
        """True when it may hold rows that the ledger would land, or call lost."""
        return self.held is None or bool(self._without(self.committed))

    @property
    def may_be_only_copy(self) -> bool:
        """True for what is moved by its finding's number only."""
        return self.held is None or bool(self.sole)

    @property
    def words(self) -> str:
        """Why it may be the only copy; empty when it can't be."""
        if self.trouble is not None:
            return f"Nobody can tell if committed files hold its rows: {self.trouble}"
        if self.held is None:
            return "It begins as a Parquet file, and what it holds can't be read."
        if not self.sole:
            return ""
        told = (f"{each.described()} of partition {number}" for number, each in self.sole.items())
        return f"No committed file holds these rows of it: {'; '.join(told)}."

    def _without(self, known: Mapping[int, OffsetRuns]) -> dict[int, OffsetRuns]:
        found = {
            partition: offsets.difference(known.get(partition, OffsetRuns()))
            for partition, offsets in sorted((self.held or {}).items())
        }
        return {partition: offsets for partition, offsets in found.items() if offsets}

    def may_hold(self, generation: int, rows: Mapping[int, OffsetRuns]) -> bool:
        """True when some of these rows may be in it."""
        if self.held is None or self.generation not in (None, generation):
            return self.held is None
        return any(
            self.held.get(partition, OffsetRuns()).intersection(offsets)
            for partition, offsets in rows.items()
        )


def stray_files(feed: str, topic: str, strays: Iterable[StrayFile]) -> tuple[Finding, ...]:
    """Each stray: a reader may count its rows twice, or find rows that nobody has committed."""
    return tuple(_stray_file(feed, topic, each) for each in strays)


def _stray_file(feed: str, topic: str, stray: StrayFile) -> Finding:
    cause = f"{stray.path} is under a path that readers read, and no committed batch owns it."
    step = f"Find out who wrote it; ./tallystick repair {feed} moves it aside, and keeps it."
    evidence: dict[str, object] = {
        "length_bytes": stray.length_bytes,
        "changed_ms": stray.changed_ms,
    }
    if stray.may_be_only_copy or stray.trouble is not None:
        cause += f" {stray.words}"
        step = (
            "Find out who wrote it, for it may be the only copy. To have it moved aside, and kept,"
            f" name this finding's number: ./tallystick repair {feed} NUMBER"
        )
        evidence[SOLE_ROWS] = _sole_rows(stray)
    return of_path(
        feed,
        topic,
        stray.path,
        A9,
        Verdict.SUSPECTED,
        cause,
        step,
        evidence=evidence,
    )


def _sole_rows(stray: StrayFile) -> object:
    """None where that could not be asked."""
    if stray.trouble is not None:
        return None
    if stray.held is None:
        return "unreadable"
    bounded = {partition: BoundedRuns.of(each) for partition, each in stray.sole.items()}
    return [{"partition": partition, **each.as_evidence()} for partition, each in bounded.items()]


def unread_strays(feed: str, topic: str, strays: Iterable[StrayFile]) -> tuple[Finding, ...]:
    """Strays of which nobody could tell what they hold, or if committed files hold that too."""
    return tuple(
        of_path(
            feed,
            topic,
            each.path,
            U1,
            Verdict.UNKNOWN,
            f"nobody can tell which committed rows are in the stray file {each.path} too:"
            f" {each.trouble}",
            f"Mend what the reason names, then: ./tallystick reconcile {feed}",
            named_as="stray",
            evidence={"said": each.trouble},
        )
        for each in strays
        if each.trouble is not None
    )


def landed_inside(feed: str, topic: str, others: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories of other feeds within this one's, each with the other feed's name."""
    return tuple(
        replace(
            of_path(
                feed,
                topic,
                directory,
                A9,
                Verdict.SUSPECTED,
                f"feed {other} lands in {directory}, under a path that readers of feed {feed} read:"
                " they find its rows too.",
                f"Give feed {other} a target.root outside of this feed's directory. What it has"
                " landed is its own: no repair of this feed moves it.",
                named_as="directory",
            ),
            evidence={"directory": directory, "other_feed": other},
        )
        for directory, other in sorted(others.items())
    )


def unread_feeds(feed: str, topic: str, unread: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories that may be another feed's, each with the reason why nobody can tell."""
    return tuple(
        of_path(
            feed,
            topic,
            directory,
            U1,
            Verdict.UNKNOWN,
            f"nobody can tell if another feed lands in {directory}: {reason}",
            f"Let our user read the manifests below it, then: ./tallystick reconcile {feed}",
            named_as="directory",
            evidence={"said": reason},
        )
        for directory, reason in sorted(unread.items())
    )


def stray_rows_twice(feed: str, topic: str, stray: StrayFile) -> tuple[Finding, ...]:
    """The offsets of a stray that a committed file holds too: who reads the directories has them
    twice.

    One finding for each partition, however many holes there are between: a transactional topic has
    one behind every transaction. It reaches from the first to the last doubled offset, and its
    evidence has the exact runs, as far as they are not too many.
    """
    path, ordinal = stray.path, stray.generation
    if ordinal is None:
        return ()
    found = []
    for partition, offsets in sorted(stray.kept.items()):
        both = BoundedRuns.of(offsets)
        if both.first_offset is None or both.last_offset is None:
            continue
        cause = f"these offsets are committed, and the stray file {path} holds them too."
        if both.run_count > 1:
            cause += f" It is {both.count} of them, in {both.run_count} runs."
        found.append(
            Finding(
                rule=B2,
                verdict=Verdict.PROVEN_DUP,
                level=Level.L2,
                feed=feed,
                topic=topic,
                generation=ordinal,
                partition=partition,
                from_offset=both.first_offset,
                until_offset=both.last_offset + 1,
                cause=cause,
                next_step=(
                    "Move the file away, by its finding (A9), or by that of its directory without"
                    f" manifest (A10): ./tallystick repair {feed}"
                ),
                evidence={"path": path, **both.as_evidence()},
                subject=path,
            )
        )
    return tuple(found)


def perhaps_in_strays(found: Iterable[Finding], strays: Iterable[StrayFile]) -> list[Finding]:
    """The same findings; missing rows that a stray holds, rewritten or in part, are UNKNOWN."""
    holding = [each for each in strays if each.sole]
    return [
        next((_perhaps_in(each, stray) for stray in holding if _holds(stray, each)), each)
        for each in found
    ]


def _holds(stray: StrayFile, found: Finding) -> bool:
    is_loss = (
        found.code is FindingCode.COMMITTED_FILE_MISSING and found.verdict is Verdict.PROVEN_LOSS
    )
    if not is_loss or found.generation is None or found.partition is None:
        return False
    if found.from_offset is None or found.until_offset is None:
        return False
    missing = OffsetRuns.of([(found.from_offset, found.until_offset)])
    return stray.may_hold(found.generation, {found.partition: missing})


def _perhaps_in(found: Finding, stray: StrayFile) -> Finding:
    return replace(
        found,
        verdict=Verdict.UNKNOWN,
        cause=f"{found.cause} The stray file {stray.path} holds some of these offsets (A9).",
        next_step=f"Look at the stray first. {found.next_step}",
        evidence={**found.evidence, "perhaps_at": stray.path},
    )
