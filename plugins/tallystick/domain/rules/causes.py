"""What findings have in common that are one trouble, in words: the word for it decides.

Each rule names one of these as its `one_cause`, or has its own: findings of several rules with the
same words are one trouble. A copied file is told for itself, and for each partition it doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tallystick.domain.rules.evidence import batch_in, file_in

if TYPE_CHECKING:
    from tallystick.domain.rules.findings import Finding


def its_subject(found: Finding) -> str:
    """The path that the finding is about, or what else its rule calls its subject."""
    return found.subject


def its_batch(found: Finding) -> str:
    """The batch; where none is named, the subject."""
    batch = batch_in(found.evidence)
    return f"batch {batch}" if batch else found.subject


def its_file(found: Finding) -> str:
    """The committed file; where none is named, the batch."""
    file = file_in(found.evidence)
    return f"file {file.name} of batch {file.batch_id}" if file else its_batch(found)


def same_topic(what: str) -> Callable[[Finding], str]:
    """The same for all partitions of the topic."""
    return lambda found: f"{what} of topic {found.topic}"


def same_log(what: str) -> Callable[[Finding], str]:
    """Another one for each life of each partition's log."""
    return lambda found: f"{what} of {found.topic}-{found.partition}, generation {found.generation}"
