"""A9, stray file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A9: Final = Rule(
    code=FindingCode.STRAY_FILE,
    kind=RuleClass.DUPLICATE,
    compares="the listing against committed files",
    endings={Level.L2: Ending.LISTING},
    verdicts=(Verdict.SUSPECTED,),
    not_when=(
        "names that every reader skips; staging; a batch that was committed meanwhile; a committed"
        " file that was moved"
    ),
    remedy="moved to quarantine; by its number where it may be the only copy of its rows",
    mending=Mending.MOVE_ASIDE,
)


@dataclass(frozen=True, slots=True)
class StrayEvidence:
    """Where a stray file lies; or in which directory another feed lands."""

    path: str
    other_feed: str | None = None

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        if self.other_feed is None:
            return {"path": self.path}
        return {"directory": self.path, "other_feed": self.other_feed}

    @classmethod
    def of(cls, found: Finding) -> StrayEvidence | None:
        """What a finding A9 carries; None for a finding of another rule."""
        if found.rule != A9:
            return None
        other = found.evidence.get("other_feed")
        if isinstance(other, str):
            return cls(str(found.evidence["directory"]), other)
        return cls(str(found.evidence["path"]))
