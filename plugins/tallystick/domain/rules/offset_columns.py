"""Level L2: the exact offsets of a batch's files against its manifest, to the single row.

Lengths and checksums are what the file system says of itself; this is what the rows say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tallystick.domain.batches.directory_proof import offsets_of
from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.a8_committed_file_missing import missing_from_batch
from tallystick.domain.rules.b2_landed_twice import doubled_in_batch
from tallystick.domain.rules.c1_content_changed import uncommitted_in_batch
from tallystick.domain.rules.file_findings import BatchRows
from tallystick.domain.rules.findings import Finding


def offset_findings(
    manifest: Manifest, gone: Collection[str], found: ReadBack
) -> Iterator[Finding]:
    """One finding for each run of offsets that has no row, more than one, or a row too many.

    `gone` are the files that repairs have replaced: neither they nor their offsets count.
    """
    wanted = offsets_of(manifest, gone)
    for partition in sorted({*wanted, *found.landed}):
        rows = BatchRows(manifest, partition)
        expected = wanted.get(partition, OffsetRuns())
        landed = found.landed.get(partition, OffsetRuns())
        yield from missing_from_batch(rows, expected.difference(landed))
        yield from doubled_in_batch(rows, found.doubled.get(partition, OffsetRuns()))
        yield from uncommitted_in_batch(rows, landed.difference(expected))
