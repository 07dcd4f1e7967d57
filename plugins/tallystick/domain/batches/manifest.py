"""A batch's own account of itself: ranges, holes, files, anchors. Written beside the data as JSON.

1. `Manifest.from_json(m.to_json()) == m`.
2. The text is the same for the same manifest, so its bytes can be compared.
3. It is enough to write the batch into an empty ledger again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from tallystick.domain.batches.batch import Attempt, BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.landed import FileSlice, LandedFile, LateRows
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.identities import (
    AttemptId,
    BatchId,
    FeedName,
    FencingToken,
    GenerationId,
    Owner,
)
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows import record_hash
from tallystick.domain.window import Window

FORMAT: Final = "tallystick-manifest-1"


@dataclass(frozen=True, slots=True)
class TailAnchor:
    """The last landed record of a partition: what a later plan reads again and compares."""

    offset: int
    leader_epoch: int | None
    content_hash: bytes | None
    """None where the ledger has only the account of an old batch: the hash is that of the row."""
    hash_version: int = record_hash.VERSION
    """Of the record hash: a hash of another one can't be compared."""


@dataclass(frozen=True, slots=True)
class AccountedRange:
    """A planned range with every offset accounted for: rows + holes = span."""

    planned: PlannedRange
    record_count: int
    holes: Mapping[HoleClass, OffsetRuns] = field(default_factory=dict)
    anchor: TailAnchor | None = None
    """None when no record of the range was landed."""
    read_epoch: int | None = None
    """The leader epoch just before the read, when the log reached past the range. A log is cut at a
    change of leaders only: as long as the leader's log reaches past the range in this epoch or an
    older one, nothing of the range was cut."""

    def __post_init__(self) -> None:
        unaccounted = self.planned.offsets.span - self.record_count - self.hole_count
        if unaccounted:
            raise ValueError(f"{self.planned.offsets}: {unaccounted} offsets unaccounted for")

    @property
    def hole_count(self) -> int:
        """Offsets without a visible record, all classes together."""
        return sum(each.count for each in self.holes.values())


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one attempt landed, proven from storage."""

    plan: BatchPlan
    attempt: Attempt
    isolation: Isolation
    ranges: tuple[AccountedRange, ...]
    files: tuple[LandedFile, ...]

    @property
    def record_count(self) -> int:
        """Rows landed."""
        return sum(each.record_count for each in self.ranges)

    @property
    def hole_count(self) -> int:
        """Offsets without a visible record."""
        return sum(each.hole_count for each in self.ranges)

    @property
    def late(self) -> LateRows | None:
        """Rows that are older than the label; None where nobody counted them, too."""
        return LateRows.total(each.late for each in self.files)

    @property
    def unhashed(self) -> Mapping[int, int]:
        """The last landed offset of each partition whose record's hash is not told."""
        return {
            each.planned.offsets.partition.partition: each.anchor.offset
            for each in self.ranges
            if each.anchor and each.anchor.content_hash is None
        }

    def to_json(self) -> str:
        """The manifest as text, keys in a fixed order, one trailing newline."""
        plan = self.plan
        window = plan.window and [
            plan.window.from_instant.isoformat(),
            plan.window.until_instant.isoformat(),
        ]
        document = {
            "format": FORMAT,
            "batch": plan.batch_id,
            "feed": plan.feed,
            "root": plan.root,
            "topic": plan.topic,
            "cluster_id": plan.cluster_id,
            "topic_id": plan.topic_id,
            "generation": plan.ordinal,
            "label": plan.label.isoformat(),
            "window": window,
            "isolation": self.isolation.value,
            "attempt": self.attempt.attempt_id,
            "token": self.attempt.token,
            "owner": self.attempt.owner,
            "records": self.record_count,
            "holes": self.hole_count,
            "replaces": [[each.batch_id, each.name] for each in plan.replaces],
            "ranges": [_range_to_json(each) for each in self.ranges],
            "files": [_file_to_json(each) for each in self.files],
        }
        return json.dumps(document, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Manifest:
        """The manifest again; ValueError when the text is none."""
        try:
            document = json.loads(text)
            if document["format"] != FORMAT:
                raise ValueError(f"format {document['format']!r} is not {FORMAT!r}")
            return _manifest_from(document)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(f"no manifest: {error!r}") from error


def _range_to_json(accounted: AccountedRange) -> dict[str, Any]:
    anchor = accounted.anchor
    offsets = accounted.planned.offsets
    return {
        "generation_id": accounted.planned.generation_id,
        "partition": offsets.partition.partition,
        "from_offset": offsets.from_offset,
        "until_offset": offsets.until_offset,
        "records": accounted.record_count,
        "holes": {
            kind.value: [list(run) for run in runs] for kind, runs in accounted.holes.items()
        },
        "read_epoch": accounted.read_epoch,
        "anchor": anchor
        and {
            "offset": anchor.offset,
            "leader_epoch": anchor.leader_epoch,
            "hash": anchor.content_hash and anchor.content_hash.hex(),
            "hash_version": anchor.hash_version,
        },
    }


def _file_to_json(file: LandedFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "bytes": file.length_bytes,
        "checksum": file.checksum,
        "slices": [
            {
                "partition": each.partition,
                "first_offset": each.first_offset,
                "last_offset": each.last_offset,
                "records": each.record_count,
            }
            for each in file.slices
        ],
        **({"late": [file.late.rows, file.late.oldest_at.isoformat()]} if file.late else {}),
    }


def _manifest_from(document: Mapping[str, Any]) -> Manifest:
    topic = document["topic"]
    ranges = tuple(_range_from(topic, each) for each in document["ranges"])
    window = document["window"]
    batch = BatchId(document["batch"])
    plan = BatchPlan(
        batch_id=batch,
        feed=FeedName(document["feed"]),
        root=document["root"],
        topic=topic,
        cluster_id=document["cluster_id"],
        topic_id=document["topic_id"],
        ordinal=document["generation"],
        label=datetime.fromisoformat(document["label"]),
        window=window and Window(*(datetime.fromisoformat(each) for each in window)),
        ranges=tuple(each.planned for each in ranges),
        replaces=tuple(
            CommittedFile(BatchId(batch_id), name) for batch_id, name in document["replaces"]
        ),
    )
    attempt = Attempt(
        AttemptId(document["attempt"]),
        batch,
        FencingToken(document["token"]),
        Owner(document["owner"]),
    )
    return Manifest(
        plan=plan,
        attempt=attempt,
        isolation=Isolation(document["isolation"]),
        ranges=ranges,
        files=tuple(_file_from(each) for each in document["files"]),
    )


def _range_from(topic: str, document: Mapping[str, Any]) -> AccountedRange:
    anchor = document["anchor"]
    return AccountedRange(
        planned=PlannedRange(
            GenerationId(document["generation_id"]),
            OffsetRange(
                TopicPartition(topic, document["partition"]),
                document["from_offset"],
                document["until_offset"],
            ),
        ),
        record_count=document["records"],
        holes={
            HoleClass(kind): OffsetRuns.of((run[0], run[1]) for run in runs)
            for kind, runs in document["holes"].items()
        },
        read_epoch=document["read_epoch"],
        anchor=anchor
        and TailAnchor(
            anchor["offset"],
            anchor["leader_epoch"],
            anchor["hash"] and bytes.fromhex(anchor["hash"]),
            anchor["hash_version"],
        ),
    )


def _file_from(document: Mapping[str, Any]) -> LandedFile:
    late = document.get("late")
    return LandedFile(
        name=document["name"],
        length_bytes=document["bytes"],
        checksum=document["checksum"],
        slices=tuple(
            FileSlice(each["partition"], each["first_offset"], each["last_offset"], each["records"])
            for each in document["slices"]
        ),
        late=late and LateRows(late[0], datetime.fromisoformat(late[1])),
    )
