"""The exact offsets of a batch's files against its manifest, to the single row (level L2).

Lengths and checksums are what the file system says of itself; this is what the rows say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from tallystick.domain.batches.directory_proof import offsets_of
from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import Verdict
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.a8_committed_file_missing import A8
from tallystick.domain.rules.b2_landed_twice import B2
from tallystick.domain.rules.c1_content_changed import C1
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.rule import Rule

OF_ROWS: Final = "rows of batch "
"""Begins the subject of these findings: the same offsets may be told of for their file, too."""


def offset_findings(
    manifest: Manifest, gone: Collection[str], found: ReadBack
) -> tuple[Finding, ...]:
    """One finding for each run of offsets that has no row, more than one, or a row too many.

    `gone` are the files that repairs have replaced: neither they nor their offsets count.
    """
    return tuple(_findings(manifest, gone, found))


def is_of_rows(found: Finding) -> bool:
    """True for what such a comparison has found, and another one may end."""
    return found.subject.startswith(OF_ROWS)


def _findings(manifest: Manifest, gone: Collection[str], found: ReadBack) -> Iterator[Finding]:
    wanted = offsets_of(manifest, gone)
    for partition in sorted({*wanted, *found.landed}):
        expected = wanted.get(partition, OffsetRuns())
        landed = found.landed.get(partition, OffsetRuns())
        for run in expected.difference(landed):
            yield _finding(
                manifest,
                partition,
                run,
                A8,
                Verdict.PROVEN_LOSS,
                "the batch's files hold no row of these committed offsets.",
            )
        for run in found.doubled.get(partition, OffsetRuns()):
            yield _finding(
                manifest,
                partition,
                run,
                B2,
                Verdict.PROVEN_DUP,
                "the batch's files hold more than one row of each of these offsets.",
            )
        for run in landed.difference(expected):
            yield _finding(
                manifest,
                partition,
                run,
                C1,
                Verdict.PROVEN_LOSS,
                "the batch's files hold rows of offsets that it has not committed.",
            )


def _finding(
    manifest: Manifest,
    partition: int,
    run: tuple[int, int],
    rule: Rule,
    verdict: Verdict,
    cause: str,
) -> Finding:
    evidence: dict[str, object] = {"batch": manifest.plan.batch_id}
    file = _holder(manifest, partition, run)
    if file:
        evidence["file"] = file
    return Finding(
        rule=rule,
        verdict=verdict,
        level=Level.L2,
        feed=manifest.plan.feed,
        topic=manifest.plan.topic,
        generation=manifest.plan.ordinal,
        partition=partition,
        from_offset=run[0],
        until_offset=run[1],
        cause=cause,
        next_step=(
            "Land these offsets again while the broker has them:"
            f" ./tallystick repair {manifest.plan.feed}"
        ),
        evidence=evidence,
        subject=f"{OF_ROWS}{manifest.plan.batch_id}",
    )


def _holder(manifest: Manifest, partition: int, run: tuple[int, int]) -> str | None:
    """The committed file whose slice the run is in; None where it is in none."""
    return next(
        (
            file.name
            for file in manifest.files
            if any(held.meets(partition, *run) for held in file.slices)
        ),
        None,
    )
