"""Words of offsets that can be had nowhere any more, for their rules (A1, A5, A8, A11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.rules.evidence import kept_in

ACCEPT: Final = "Two people may accept it: tallystick waive --help"
NOT_MENDED: Final = (
    "these offsets can be had nowhere any more; two people may accept it (tallystick waive --help)."
)
GONE: Final = "Nothing can bring them back from this topic"
GOES_ON: Final = f"{GONE}; landing goes on after them."


def unread(cause: str, evidence: Mapping[str, object]) -> str:
    """The cause, which ends without a full stop, of a loss of what was not landed."""
    return f"{cause}, or before what was read was proven." if kept_in(evidence) else f"{cause}."


def look_in_kept(evidence: Mapping[str, object]) -> str:
    """Where files are kept that may hold the rows, as a sentence; empty when there are none."""
    kept = kept_in(evidence)
    if not kept:
        return ""
    return f"Files that may hold some of these rows are kept in {', '.join(kept)}: look there. "
