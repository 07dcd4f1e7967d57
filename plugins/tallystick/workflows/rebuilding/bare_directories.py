"""Makes the manifest of a directory that has lost it, from the offset columns of its files.

The broker is asked only for what no file says: which log the rows are of, where the ledger and all
other manifests are silent; and why offsets between them have no row. Only a log that holds the last
row of a partition, byte for byte, is believed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from tallystick.domain.batches.accounting import holes_in
from tallystick.domain.batches.bare_batch import (
    BareBatch,
    Life,
    batch_of_rows,
    lives_in,
    plan_of_rows,
    replacing,
)
from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.directory_proof import DirectoryProof
from tallystick.domain.batches.landed import LandedFile, ReadBack
from tallystick.domain.batches.manifest import Manifest, TailAnchor
from tallystick.domain.batches.paths import MANIFEST_NAME, BatchPath
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.logs.snapshot import RecordEvidence
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rebuilding.plan import LeftOut, PublishedBatch
from tallystick.errors import FileMissing, ManifestMismatch, SourceError, StorageRefused
from tallystick.workflows.committing.proving import causes_of
from tallystick.workflows.services import Services
from tallystick.workflows.stored.known_logs import logs_of
from tallystick.workflows.stored.published_manifests import PublishedManifests, manifest_at

log = logging.getLogger(__name__)

_ENTERED = DirectoryProof(
    (), (f"it had no {MANIFEST_NAME}: entered from the offset columns of its files",)
)


class BareDirectories:
    """Directories without a manifest, and what a rebuild does about them."""

    def __init__(self, batches: Sequence[BareBatch]) -> None:
        self._batches = {each.path.batch_id: each for each in batches}

    @property
    def batch_ids(self) -> list[BatchId]:
        """As the directories bear them."""
        return list(self._batches)

    @property
    def plans(self) -> list[BatchPlan]:
        """What is known of the offsets that they hold."""
        return [each.plan for each in self._batches.values() if each.plan]

    @property
    def published(self) -> dict[BatchId, PublishedBatch]:
        """Those whose every offset is accounted for."""
        return {
            batch_id: PublishedBatch.of(each.manifest)
            for batch_id, each in self._batches.items()
            if each.manifest
        }

    @property
    def proofs(self) -> dict[BatchId, DirectoryProof]:
        """The same, with what is told of them."""
        return dict.fromkeys(self.published, _ENTERED)

    def left_out(self, *, are_wanted: bool) -> list[LeftOut]:
        """What can't be entered; all of them where that was not asked for."""
        return [
            LeftOut(str(each.path), batch_id, each.reasons or (_way_in(each),))
            for batch_id, each in self._batches.items()
            if each.reasons or not are_wanted
        ]

    def write(self, services: Services, batch_ids: Iterable[BatchId]) -> None:
        """Have their manifests in the directories: from here on they are as all others."""
        for batch_id in batch_ids:
            bare = self._batches.get(batch_id)
            if bare and bare.manifest:
                services.store.write(bare.path.manifest, bare.manifest.to_json().encode())
                log.warning("Wrote %s from the rows of its files.", bare.path.manifest)


def _way_in(bare: BareBatch) -> str:
    offsets = ", ".join(str(each.offsets) for each in bare.plan.ranges) if bare.plan else ""
    return f"it has no {MANIFEST_NAME}; its files hold {offsets}: --without-manifest enters them"


def bare_directories(
    services: Services, paths: Iterable[BatchPath], published: PublishedManifests
) -> BareDirectories:
    """What each of these directories holds, beside those that have a manifest.

    Raises StorageUnavailable.
    """
    known = {key: Life(each.cluster_id, each.topic_id) for key, each in logs_of(services).items()}
    for plan in published.plans:
        for planned in plan.ranges:
            key = planned.offsets.partition.partition, plan.ordinal
            known.setdefault(key, Life(plan.cluster_id, plan.topic_id))
    batches = [_bare_batch(services, each, known) for each in paths]
    missing = list(_missing_files(services, published)) if batches else []
    return BareDirectories([replacing(each, missing) for each in batches])


def _missing_files(
    services: Services, published: PublishedManifests
) -> Iterator[tuple[Manifest, LandedFile]]:
    """Files that a published batch names and lacks; a repair may have taken their place.

    One that may not be asked is not known to be missing.
    """
    for batch_id, each in published.batches.items():
        path = BatchPath.of(each.plan)
        if published.proofs[batch_id].is_proven:
            continue
        with suppress(StorageRefused):
            manifest = manifest_at(services, path)
            if not isinstance(manifest, Manifest):
                continue
            for file in manifest.files:
                if file.slices and services.store.status(f"{path}/{file.name}") is None:
                    yield manifest, file


def _bare_batch(
    services: Services, path: BatchPath, known: Mapping[tuple[int, int], Life]
) -> BareBatch:
    try:
        found = services.store.read_back(str(path), path.hour if services.feed.windows else None)
        hashes = _last_rows(services, path, found)
    except (FileMissing, ManifestMismatch, StorageRefused) as error:
        return BareBatch(path, None, None, (error.sentence().rstrip("."),))
    lives = lives_in(found.landed, path.ordinal, known)
    try:
        records, life = _as_log_has_them(services, hashes)
    except SourceError as error:
        log.warning("%s: the broker was not heard: %s", path, error)
        records, life = {}, None
    if not lives and life and len(records) == len(hashes):
        lives = {life}
    if len(lives) != 1:
        reason = (
            f"it has no {MANIFEST_NAME}, and nothing says of which life of the topic its rows are:"
            " no other manifest, and no log that holds them now"
        )
        return BareBatch(path, None, None, (reason,))
    [of_rows] = lives
    records = records if life == of_rows else {}
    plan = plan_of_rows(path, services.topic, of_rows, found)
    try:
        causes = _causes(services, plan, found, records)
    except SourceError as error:
        log.warning("%s: the broker did not say why rows are not there: %s", path, error)
        causes = {}
    return batch_of_rows(
        path,
        plan,
        found,
        causes,
        {
            partition: TailAnchor(offset, _epoch(records, partition), content)
            for partition, (offset, content) in hashes.items()
        },
        attempt_id=AttemptId(services.new_id()),
        isolation=services.isolation,
    )


def _epoch(records: Mapping[int, RecordEvidence], partition: int) -> int | None:
    return records[partition].leader_epoch if partition in records else None


def _last_rows(
    services: Services, path: BatchPath, found: ReadBack
) -> dict[int, tuple[int, bytes]]:
    """By partition, the last offset and the hash of its row."""
    last: dict[int, tuple[int, str]] = {}
    for file in found.files:
        for each in file.slices:
            last[each.partition] = max(
                (each.last_offset, file.name), last.get(each.partition, (-1, ""))
            )
    return {
        partition: (
            offset,
            services.store.landed_record_hash(str(path), name, partition, offset),
        )
        for partition, (offset, name) in last.items()
    }


def _as_log_has_them(
    services: Services, hashes: Mapping[int, tuple[int, bytes]]
) -> tuple[dict[int, RecordEvidence], Life]:
    """The records that the topic's log of today has where these rows are, if they are the same."""
    snapshot = services.broker.snapshot(services.topic)
    asked = {
        partition: offset
        for partition, (offset, _) in hashes.items()
        if partition in snapshot.partitions
    }
    records = services.broker.records_at(services.topic, asked) if asked else {}
    same = {
        partition: each
        for partition, each in records.items()
        if each.content_hash == hashes[partition][1]
    }
    return same, Life(snapshot.cluster_id, snapshot.topic_id)


def _causes(
    services: Services, plan: BatchPlan, found: ReadBack, records: Mapping[int, RecordEvidence]
) -> dict[int, Mapping[HoleClass, OffsetRuns]]:
    return {
        each.planned.offsets.partition.partition: causes_of(
            services, each, plan, services.isolation
        )
        for each in holes_in(plan.ranges, found)
        if each.holes and each.planned.offsets.partition.partition in records
    }
