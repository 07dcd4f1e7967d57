"""Words that several rules use: of what findings have in common, and of what is lost.

Each rule names a function for its `one_cause`: findings of several rules with the same words are
one trouble. A copied file is told for itself, and for each partition it doubles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tallystick.domain.rules.evidence import batch_in, file_in, kept_in

if TYPE_CHECKING:
    from tallystick.domain.rules.findings import Finding

ACCEPT: Final = "Two people may accept it: tallystick waive --help"
NOT_MENDED: Final = (
    "these offsets can be had nowhere any more; two people may accept it (tallystick waive --help)."
)
GONE: Final = "Nothing can bring them back from this topic"
GOES_ON: Final = f"{GONE}; landing goes on after them."


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


def unread(cause: str, evidence: Mapping[str, object]) -> str:
    """The cause, which ends without a full stop, of a loss of what was not landed."""
    return f"{cause}, or before what was read was proven." if kept_in(evidence) else f"{cause}."


def look_in_kept(evidence: Mapping[str, object]) -> str:
    """Where files are kept that may hold the rows, as a sentence; empty when there are none."""
    kept = kept_in(evidence)
    if not kept:
        return ""
    return f"Files that may hold some of these rows are kept in {', '.join(kept)}: look there. "
