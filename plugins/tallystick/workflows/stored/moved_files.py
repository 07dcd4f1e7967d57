"""Committed files that somebody has moved: found by length and checksum, and moved back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.replacing import rows_of_file
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.stray_file import StrayFile, generation_in
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.repair.facts import MovedFile
from tallystick.ports.batches import CommittedBatch
from tallystick.ports.proofs import FileState
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.readers_tree import asking, listed_tree
from tallystick.workflows.stored.stray_check import look_at_strays

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """What became of files that are not in their place."""

    elsewhere: Mapping[CommittedFile, MovedFile] = field(default_factory=dict)
    perhaps_at: Mapping[CommittedFile, str] = field(default_factory=dict)
    """Of which rows may lie in a stray, or where nobody could ask, each with that path."""


def look_for(
    services: Services, batches: Iterable[CommittedBatch], missing: Collection[CommittedFile]
) -> MissingFiles:
    """Where missing files of these batches lie, or may lie; storage is listed only if any is."""
    lost = {
        CommittedFile(batch.plan.batch_id, file.name): (batch, file)
        for batch in batches
        for file in batch.manifest.files
        if file.slices and CommittedFile(batch.plan.batch_id, file.name) in missing
    }
    if not lost:
        return MissingFiles()
    directories = services.ledger.directories(services.feed_name)
    tops = [f"{root}/{services.feed_name}" for root in feed_roots(services)]
    with asking() as pool:
        tree = listed_tree(services, tops, pool)
    states = {each: FileState.of(file) for each, (_, file) in lost.items()}
    look = look_at_strays(services, directories, directories, tree, states)
    unasked = [*tree.refused, *look.unasked]
    return MissingFiles(
        {
            each: MovedFile(path, f"{place_of(lost[each][0])}/{each.name}")
            for each, path in look.elsewhere.items()
        },
        {
            each: path
            for each, (batch, file) in lost.items()
            if each not in look.elsewhere
            for path in (
                *_holding(look.strays, batch.plan.ordinal, rows_of_file(batch.manifest, file)),
                *(one for one in unasked if generation_in(one) in (None, batch.plan.ordinal)),
            )
        },
    )


def place_of(batch: CommittedBatch) -> str:
    """Where the batch's files belong now."""
    if batch.state is BatchState.PUBLISHED:
        return str(BatchPath.of(batch.plan))
    return StagingPath.of(batch.plan, batch.attempt_id).data


def _holding(
    strays: Iterable[StrayFile], generation: int, rows: Mapping[TopicPartition, OffsetRuns]
) -> list[str]:
    """The paths of the strays that may hold some of the rows."""
    wanted = {each.partition: offsets for each, offsets in rows.items()}
    return [each.path for each in strays if each.may_hold(generation, wanted)]
