"""A9, stray file.

A stray that may be the only copy of its rows is moved by its finding's number only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rows.scrub import BoundedRuns
from tallystick.domain.rules.causes import its_subject
from tallystick.domain.rules.file_findings import finding_at_path
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

A9: Final = Rule(
    code=FindingCode.STRAY_FILE,
    kind=RuleClass.DUPLICATE,
    compares="the listing against committed files",
    endings={Level.L2: Ending.LISTING},
    verdicts=(Verdict.SUSPECTED,),
    not_when="names that every reader skips; staging; a batch that was committed meanwhile",
    remedy="moved to quarantine; by its number where it may be the only copy of its rows",
    one_cause=its_subject,
    mending=Mending.QUARANTINE,
    traits=frozenset(),
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


def stray_files(feed: str, topic: str, strays: Iterable[StrayFile]) -> tuple[Finding, ...]:
    """Each stray: a reader may count its rows twice, or find rows that nobody has committed."""
    return tuple(_stray_file(feed, topic, each) for each in strays)


def _stray_file(feed: str, topic: str, stray: StrayFile) -> Finding:
    cause = f"{stray.path} is under a path that readers read, and no committed batch owns it."
    step = f"Find out who wrote it; tallystick repair {feed} moves it to quarantine."
    evidence = {
        **StrayEvidence(stray.path).as_json(),
        "length_bytes": stray.length_bytes,
        "changed_ms": stray.changed_ms,
    }
    if stray.may_be_only_copy or stray.trouble is not None:
        cause += f" {stray.words}"
        step = (
            "Find out who wrote it, for it may be the only copy. To have it moved to quarantine,"
            f" name this finding's number: tallystick repair {feed} NUMBER"
        )
        evidence["sole_rows"] = _sole_rows(stray)
    return finding_at_path(
        feed,
        topic,
        stray.path,
        A9,
        cause=cause,
        next_step=step,
        evidence=evidence,
    )


def _sole_rows(stray: StrayFile) -> object:
    """None where that could not be asked."""
    if stray.trouble is not None:
        return None
    if stray.held is None:
        return "unreadable"
    bounded = {partition: BoundedRuns.of(each) for partition, each in stray.sole.items()}
    return [{"partition": partition, **each.as_evidence()} for partition, each in bounded.items()]


def landed_inside(feed: str, topic: str, others: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories of other feeds within this one's, each with the other feed's name."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            directory,
            A9,
            cause=(
                f"feed {other} lands in {directory}, under a path that readers of feed {feed} read:"
                " they find its rows too."
            ),
            next_step=(
                f"Give feed {other} a target.root outside of this feed's directory. What it has"
                " landed is its own: no repair of this feed moves it."
            ),
            evidence=StrayEvidence(directory, other).as_json(),
        )
        for directory, other in sorted(others.items())
    )
