"""B2, landed twice: offsets of which readers find more than one row.

A finding holds offsets that are concerned, all of them, and no others, as far as they can be named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import BoundedRuns, ReadSlice
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import of_batch
from tallystick.domain.rules.file_findings import BatchRows, FileRows
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, SubjectKind
from tallystick.domain.verdicts import Verdict


def _its_holders(found: Finding) -> str:
    shared, places = SharedWith.of(found), found.evidence.get("places")
    if shared:
        return shared.path
    return ", ".join(map(str, places)) if isinstance(places, list) else its_file(found)


B2: Final = Rule(
    code=FindingCode.LANDED_TWICE,
    kind=RuleClass.DUPLICATE,
    compares="offset columns of the files that readers see",
    endings={
        Level.L2: Ending.LISTING,
        SubjectKind.BATCH_ROWS: Ending.OFFSETS_READ,
        Level.L3: Ending.FULL_READ,
    },
    verdicts=(Verdict.PROVEN_DUP, Verdict.SUSPECTED),
    not_when="the same numbers in two generations; retracted files",
    remedy=(
        "a stray moves to quarantine; batches that share offsets are landed once more, in place of"
        " all of them"
    ),
    one_cause=_its_holders,
    mending=Mending.LAND_AGAIN,
)


@dataclass(frozen=True, slots=True)
class SharedWith:
    """Evidence of what holds committed offsets beside their batch."""

    path: str
    """A stray file; or a directory that a rebuild has left out."""
    kept_batch: BatchId | None = None
    """The batch that the ledger keeps, where a rebuild has told it."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {"path": self.path, **({"kept_batch": self.kept_batch} if self.kept_batch else {})}

    @classmethod
    def of(cls, found: Finding) -> SharedWith | None:
        """What a finding B2 carries; None for another rule's, and where committed files share."""
        path, kept = found.evidence.get("path"), found.evidence.get("kept_batch")
        if found.rule != B2 or not isinstance(path, str):
            return None
        return cls(path, BatchId(kept) if isinstance(kept, str) else None)


def is_among_committed(found: Finding) -> bool:
    """True for rows that are there twice in committed files alone."""
    return found.rule == B2 and SharedWith.of(found) is None


@dataclass(frozen=True, slots=True)
class HeldOffsets:
    """The exact offsets of one partition that one batch, or one file of it, holds."""

    batch_id: str
    place: str
    """The file, or the directory."""
    offsets: OffsetRuns
    doubled: OffsetRuns = field(default_factory=OffsetRuns)
    """Those that are there more than once."""


def shared_by_batches(
    feed: str, account: GenerationAccount, held: Sequence[HeldOffsets]
) -> tuple[Finding, ...]:
    """Offsets that committed files hold more than once, each run with the places that hold it."""
    ordered = sorted(held, key=lambda each: (each.batch_id, each.place))
    once, twice = OffsetRuns(), OffsetRuns()
    for each in ordered:
        twice = twice.union(once.intersection(each.offsets)).union(each.doubled)
        once = once.union(each.offsets)
    found = []
    for run in twice:
        holders = [each for each in ordered if each.offsets.clipped(*run)]
        doubled = [each.place for each in holders if each.doubled.clipped(*run)]
        found.append(
            finding(
                B2,
                Place.of_log(feed, account).at(*run),
                cause=(
                    "these offsets are in more than one row; committed places that hold them:"
                    f" {len(holders)}."
                ),
                next_step=_counted_twice(feed),
                evidence={
                    "places": [each.place for each in holders],
                    "more_than_once_in": doubled,
                },
            )
        )
    return tuple(found)


def shared_with_stray(feed: str, topic: str, stray: StrayFile) -> Iterator[Finding]:
    """The offsets of a stray that a committed file holds too.

    One finding for each partition, however many holes there are between: a transactional topic has
    one behind every transaction. It reaches from the first to the last doubled offset, and its
    evidence has the exact runs, as far as they are not too many.
    """
    for partition, offsets in sorted(stray.kept.items()):
        both = BoundedRuns.of(offsets)
        if stray.generation is None or both.reach is None:
            continue
        cause = f"these offsets are committed, and the stray file {stray.path} holds them too."
        if both.run_count > 1:
            cause += f" It is {both.count} of them, in {both.run_count} runs."
        place = Place.at_path(feed, topic, stray.path).at(*both.reach)
        yield finding(
            B2,
            replace(place, generation=stray.generation, partition=partition),
            cause=cause,
            next_step=(
                "Move the file away, by its finding (A9), or by that of its directory without"
                f" manifest (A10): tallystick repair {feed}. One with a manifest may be a batch:"
                f" tallystick ledger rebuild {feed}"
            ),
            evidence={**SharedWith(stray.path).as_json(), **both.as_evidence()},
        )


def left_out(plan: BatchPlan, offsets: OffsetRange, kept: BatchId) -> Finding:
    """Offsets of a published directory that a rebuild leaves out, for the batch that it keeps holds
    them too.
    """
    directory = str(BatchPath.of(plan))
    return finding(
        B2,
        replace(Place.in_batch(plan, offsets), subject=directory),
        cause=f"{directory} holds offsets that batch {kept} holds too.",
        next_step=(
            f"The ledger keeps batch {kept}. Move the directory out of the feed's directory, and"
            " keep it: what only it holds is landed again then, or recorded as lost."
        ),
        evidence={**SharedWith(directory, kept).as_json(), **of_batch(plan.batch_id)},
    )


def doubled_in_batch(rows: BatchRows, doubled: OffsetRuns) -> Iterator[Finding]:
    """Offsets of which a batch's files hold more than one row."""
    cause = "the batch's files hold more than one row of each of these offsets."
    return rows.findings(B2, doubled, cause)


def doubled_in_file(rows: FileRows, read: ReadSlice) -> Iterator[Finding]:
    """Offsets of which a full read has found more than one row in a file."""
    return rows.findings(
        B2,
        read.doubled,
        cause=f"{rows.path} has more than one row of each of these offsets.",
        next_step=_counted_twice(rows.plan.feed),
        now=read.fingerprint,
    )


def uncommitted_in_file(rows: FileRows, read: ReadSlice) -> Iterator[Finding]:
    """Offsets that a full read has found in a file that was not committed with them."""
    return rows.findings(
        B2,
        read.foreign,
        Verdict.SUSPECTED,
        cause=(
            f"{rows.path} has rows of these offsets, which were not committed with it: another file"
            " holds them too, or nobody has ever proven them."
        ),
        next_step=(
            "Find out who wrote the file. See what a repair would do:"
            f" tallystick repair {rows.plan.feed} --dry-run"
        ),
        now=read.fingerprint,
        among="rows that were not committed",
    )


def _counted_twice(feed: str) -> str:
    return (
        f"Readers count them twice. See what a repair would do: tallystick repair {feed} --dry-run"
    )
