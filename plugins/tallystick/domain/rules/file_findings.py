"""Findings about what lies in storage: their subject, what they carry, and the usual next steps.

1. A file, its rows, and the rows of its batch are three subjects: each is ended by its own look.
2. What is told rests on what was found: the file's length and checksum, or its rows' fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.finding_codes import Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import BoundedRuns
from tallystick.domain.rules.evidence import of_file
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Rule
from tallystick.domain.verdicts import Verdict

_OF_BATCH: Final = "rows of batch "


def how_to_land_again(feed: str) -> str:
    """The next step where the ledger alone says what is to be landed."""
    return f"Land these offsets again while the broker has them: tallystick repair {feed}"


def see_if_kept(feed: str) -> str:
    """The next step where rows may be lost."""
    return (
        "See if the broker still has these offsets, and what a repair would do:"
        f" tallystick repair {feed} --dry-run. Delete nothing."
    )


def places_of_file(plan: BatchPlan, file: LandedFile) -> Iterator[Place]:
    """A committed file as a whole, by each partition in it."""
    for each in file.slices:
        yield _place(plan, each.partition, each.run, Level.L2, file.name, subject=file.name)


def _place(
    plan: BatchPlan,
    partition: int,
    run: tuple[int, int],
    level: Level,
    file: str | None,
    *,
    subject: str,
) -> Place:
    """A run of offsets in a batch, with the file that holds it; None where none does."""
    return replace(
        Place.in_batch(plan, plan.offsets_in(partition, run)),
        subject=subject,
        level=level,
        evidence=of_file(plan.batch_id, file),
    )


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of one partition in a batch's files, as their offset columns show them."""

    manifest: Manifest
    partition: int

    def findings(self, rule: Rule, offsets: OffsetRuns, cause: str) -> Iterator[Finding]:
        """One finding for each run, with the committed file whose slice it is in, if any.

        The same offsets may be told of for their file, too.
        """
        plan = self.manifest.plan
        for run in offsets:
            held_by = next(
                (
                    file.name
                    for file in self.manifest.files
                    if any(held.meets(self.partition, *run) for held in file.slices)
                ),
                None,
            )
            subject = f"{_OF_BATCH}{plan.batch_id}"
            place = _place(plan, self.partition, run, Level.L2, held_by, subject=subject)
            yield finding(rule, place, cause=cause, next_step=how_to_land_again(plan.feed))


def is_of_batch_rows(found: Finding) -> bool:
    """True for what a look at a batch's offset columns has found, and another one may end."""
    return found.subject.startswith(_OF_BATCH)


@dataclass(frozen=True, slots=True)
class FileRows:
    """The rows of one partition in a committed file, as a full read shows them."""

    plan: BatchPlan
    file: LandedFile
    partition: int

    @property
    def path(self) -> str:
        """Where the file lies."""
        return f"{BatchPath.of(self.plan)}/{self.file.name}"

    @property
    def place(self) -> Place:
        """The offsets that they were committed with."""
        [run] = [each.run for each in self.file.slices if each.partition == self.partition]
        return self.at(run)

    def at(self, run: tuple[int, int], among: str = "rows") -> Place:
        """A run of their offsets.

        The file as a file may be told of too, for another reason, and ends otherwise.
        """
        name = self.file.name
        return _place(self.plan, self.partition, run, Level.L3, name, subject=f"{among} of {name}")

    def findings(
        self,
        rule: Rule,
        offsets: BoundedRuns,
        verdict: Verdict | None = None,
        *,
        cause: str,
        next_step: str,
        now: Fingerprint,
        among: str = "rows",
    ) -> Iterator[Finding]:
        """One finding for each run; one over all of them where they are too many to be named."""
        evidence: dict[str, object] = {"rows_now": sums_of(now)}
        runs = offsets.runs
        if offsets.reach and not offsets.are_all_named:
            runs = (offsets.reach,)
            cause += f" It is {offsets.count} of them, in {offsets.run_count} runs."
            evidence = {**offsets.as_evidence(), **evidence}
        for run in runs:
            place = self.at(run, among)
            yield finding(rule, place, verdict, cause=cause, next_step=next_step, evidence=evidence)


def sums_of(fingerprint: Fingerprint) -> Mapping[str, object]:
    """The fingerprint of rows as a finding carries it."""
    return {
        "rows": fingerprint.record_count,
        "offset_sum": fingerprint.offset_sum,
        "hash_sums": list(fingerprint.hash_sums),
        "first_offset": fingerprint.first_offset,
        "last_offset": fingerprint.last_offset,
    }
