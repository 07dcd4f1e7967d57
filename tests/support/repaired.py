"""A repair in a few words: lands committed files again by the steps of any batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tallystick.domain.batches.batch import BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.ledger.batches import FileRecord
from tallystick.workflows.landing.run import carry_out
from tallystick.workflows.services import Services

OWNER = Owner("repair")


def repaired(services: Services, record: FileRecord) -> BatchPlan:
    """The published batch that took the file's place; the file lies in quarantine since."""
    plan = replace(
        record.plan,
        batch_id=BatchId(services.new_id()),
        window=None,
        ranges=_ranges(record),
        replaces=(CommittedFile(record.batch_id, record.file.name),),
    )
    with services.ledger.planning(services.feed_name, services.topic) as session:
        session.freeze(None, [plan], [], owner=OWNER, lease=services.lease)
    outcome = carry_out(services, plan.batch_id, OWNER)
    assert outcome.directory, outcome
    old = f"{BatchPath.of(record.plan)}/{record.file.name}"
    if services.store.status(old):
        services.store.rename_exclusive(
            old, f"{plan.root}/_quarantine/{plan.batch_id}/{record.file.name}"
        )
    return plan


def _ranges(record: FileRecord) -> tuple[PlannedRange, ...]:
    """The offsets from the file's first to its last row, in the logs that its batch landed."""
    logs: dict[int, PlannedRange] = {
        each.offsets.partition.partition: each for each in record.plan.ranges
    }
    found: Sequence[PlannedRange] = [
        PlannedRange(
            logs[each.partition].generation_id,
            OffsetRange(
                logs[each.partition].offsets.partition, each.first_offset, each.last_offset + 1
            ),
        )
        for each in record.file.slices
    ]
    return tuple(found)
