"""How offsets are told that can be had nowhere any more: by their rules (A1, A2, A5, A8, A11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.evidence import kept_in
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Rule

ACCEPT: Final = "Two people may accept it: tallystick waive --help"
NOT_MENDED: Final = (
    "these offsets can be had nowhere any more; two people may accept it (tallystick waive --help)."
)
GONE: Final = "Nothing can bring them back from this topic"


def lost_unread(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    rule: Rule,
    evidence: Mapping[str, object] | None,
    *,
    cause: str,
    advice: str,
) -> Finding:
    """Offsets that their log lost before they were landed; `cause` ends without a full stop."""
    kept = look_in_kept(evidence)
    return finding(
        rule,
        Place.of_log(feed, account, offsets),
        cause=f"{cause}, or before what was read was proven." if kept else f"{cause}.",
        next_step=f"{kept}{GONE}; landing goes on after them. {advice} {ACCEPT}",
        evidence=evidence,
    )


def look_in_kept(evidence: Mapping[str, object] | None) -> str:
    """Where files are kept that may hold the rows, as a sentence; empty when there are none."""
    kept = kept_in(evidence or {})
    if not kept:
        return ""
    return f"Files that may hold some of these rows are kept in {', '.join(kept)}: look there. "
