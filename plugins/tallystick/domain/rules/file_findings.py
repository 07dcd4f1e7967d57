"""Findings about what lies in storage: their subject, what they carry, and the usual next steps.

1. A file, its rows, and the rows of its batch are three subjects: each is ended by its own look.
2. What is told rests on what was found: the file's length and checksum, or its rows' fingerprint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.finding_codes import Level
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import BoundedRuns
from tallystick.domain.rules.evidence import of_file
from tallystick.domain.rules.findings import Finding, finding_in_batch
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


def finding_at_path(
    feed: str,
    topic: str,
    path: str,
    rule: Rule,
    *,
    name: str = "",
    cause: str,
    next_step: str,
    evidence: Mapping[str, object],
) -> Finding:
    """A finding about a file or a directory, whatever offsets it holds; the name is said
    where the rule has several.
    """
    return Finding(
        rule=rule,
        verdict=rule.only_verdict,
        level=Level.L2,
        feed=feed,
        topic=topic,
        cause=cause,
        next_step=next_step,
        evidence=evidence,
        subject=path,
        name=name,
    )


def findings_of_file(
    plan: BatchPlan,
    file: LandedFile,
    rule: Rule,
    verdict: Verdict | None = None,
    *,
    cause: str,
    next_step: str,
    evidence: Mapping[str, object],
) -> Iterator[Finding]:
    """One finding for each partition of a committed file, about the file as a whole."""
    for each in file.slices:
        yield finding_in_batch(
            plan,
            plan.offsets_in(each.partition, each.run),
            rule,
            verdict,
            level=Level.L2,
            cause=cause,
            next_step=next_step,
            evidence={**of_file(plan.batch_id, file.name), **evidence},
            subject=file.name,
        )


@dataclass(frozen=True, slots=True)
class BatchRows:
    """The rows of one partition in a batch's files, as their offset columns show them."""

    manifest: Manifest
    partition: int

    def finding(self, rule: Rule, verdict: Verdict, run: tuple[int, int], cause: str) -> Finding:
        """A finding about a run of offsets, with the committed file whose slice it is in, if any.

        The same offsets may be told of for their file, too.
        """
        plan = self.manifest.plan
        held_by = next(
            (
                file.name
                for file in self.manifest.files
                if any(held.meets(self.partition, *run) for held in file.slices)
            ),
            None,
        )
        return finding_in_batch(
            plan,
            plan.offsets_in(self.partition, run),
            rule,
            verdict,
            level=Level.L2,
            cause=cause,
            next_step=how_to_land_again(plan.feed),
            evidence=of_file(plan.batch_id, held_by),
            subject=f"{_OF_BATCH}{plan.batch_id}",
        )


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
    def run(self) -> tuple[int, int]:
        """The offsets that they were committed with."""
        [committed] = [each for each in self.file.slices if each.partition == self.partition]
        return committed.run

    def finding(
        self,
        rule: Rule,
        verdict: Verdict,
        *,
        cause: str,
        next_step: str,
        evidence: Mapping[str, object],
        run: tuple[int, int] | None = None,
        among: str = "rows",
    ) -> Finding:
        """A finding about a run of their offsets; about all of them without one.

        The file as a file may be told of too, for another reason, and ends otherwise.
        """
        return finding_in_batch(
            self.plan,
            self.plan.offsets_in(self.partition, run or self.run),
            rule,
            verdict,
            level=Level.L3,
            cause=cause,
            next_step=next_step,
            evidence={**of_file(self.plan.batch_id, self.file.name), **evidence},
            subject=f"{among} of {self.file.name}",
        )

    def findings_in(
        self,
        offsets: BoundedRuns,
        rule: Rule,
        verdict: Verdict,
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
            yield self.finding(
                rule,
                verdict,
                cause=cause,
                next_step=next_step,
                evidence=evidence,
                run=run,
                among=among,
            )


def sums_of(fingerprint: Fingerprint) -> Mapping[str, object]:
    """The fingerprint of rows as a finding carries it."""
    return {
        "rows": fingerprint.record_count,
        "offset_sum": fingerprint.offset_sum,
        "hash_sums": list(fingerprint.hash_sums),
        "first_offset": fingerprint.first_offset,
        "last_offset": fingerprint.last_offset,
    }
