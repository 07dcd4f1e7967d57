"""Evidence that findings of several rules carry, written and read here: a batch and its file, a
path, and what could not be asked.

What one rule's findings alone carry is in its own module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.findings import Finding

NULL_IF_NOT_ASKED: Final = ("checksum", "sole_rows")
"""What is null where it could not be asked: the file's checksum now, the rows that only it holds.
"""
NOT_ASKED: Final = "not_asked"
"""The path where rows may lie, and where nobody could look."""
HELD_IN: Final = "held_in"
"""The directories of attempts that may hold rows which no commit does, each with why not."""


def of_batch(batch_id: BatchId) -> dict[str, object]:
    """What a finding about a batch carries."""
    return {"batch": batch_id}


def of_file(batch_id: BatchId, name: str | None) -> dict[str, object]:
    """What a finding about a committed file carries; without a name, one about its batch."""
    return {**of_batch(batch_id), **({"file": name} if name else {})}


def batch_in(evidence: Mapping[str, object]) -> BatchId | None:
    """The batch that a finding is about; None where it names none."""
    named = _text(evidence, "batch")
    return None if named is None else BatchId(named)


def batches_in_trouble(standing: Iterable[Finding]) -> frozenset[BatchId]:
    """The batches that these findings are about: no look calls one clean, accepted or not."""
    return frozenset(filter(None, (batch_in(each.evidence) for each in standing)))


def file_in(evidence: Mapping[str, object]) -> CommittedFile | None:
    """The committed file that a finding is about; None where it names none."""
    batch_id, name = batch_in(evidence), _text(evidence, "file")
    return CommittedFile(batch_id, name) if batch_id and name is not None else None


def of_topic(topic_id: str) -> dict[str, object]:
    """What a finding about a partition carries that no plan may have seen."""
    return {"topic_id": topic_id}


def topic_id_in(evidence: Mapping[str, object]) -> str | None:
    """The topic id under which a partition was shown, or was not; None where it is not told."""
    return _text(evidence, "topic_id")


def of_kept(places: Iterable[str]) -> dict[str, object]:
    """What a finding carries of the places where files are kept that may hold its rows."""
    kept = list(places)
    return {"kept": kept} if kept else {}


def kept_in(evidence: Mapping[str, object]) -> tuple[str, ...]:
    """The places where files are kept that may hold the rows; none where none is told."""
    kept = evidence.get("kept")
    return tuple(kept) if isinstance(kept, list) else ()


def path_in(evidence: Mapping[str, object]) -> str | None:
    """The file or directory in storage that a finding is about; None where it names none."""
    return _text(evidence, "path")


def of_path_not_asked(path: str) -> dict[str, object]:
    """What a finding carries whose rows may lie in a path where nobody could look."""
    return {NOT_ASKED: path}


def path_not_asked(evidence: Mapping[str, object]) -> str | None:
    """The path where nobody could look for the missing rows; None where that is not told."""
    return _text(evidence, NOT_ASKED)


def of_held(reasons: Mapping[str, str]) -> dict[str, object]:
    """What a finding carries whose rows attempts may hold: their directories, each with the reason
    why nothing of it is committed.
    """
    return {HELD_IN: reasons}


def held_in(evidence: Mapping[str, object]) -> Mapping[str, str] | None:
    """The directories of attempts that may hold the rows, with the reasons; None without any."""
    reasons = evidence.get(HELD_IN)
    return reasons if isinstance(reasons, Mapping) else None


def _text(evidence: Mapping[str, object], name: str) -> str | None:
    told = evidence.get(name)
    return told if isinstance(told, str) else None
