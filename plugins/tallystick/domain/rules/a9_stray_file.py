"""A9, stray file.

A stray that may be the only copy of its rows is moved by its finding's number only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rows.scrub import BoundedRuns
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

STRAY: Final = "stray file"
OTHER_FEED: Final = "another feed's"

A9: Final = Rule(
    code=FindingCode.STRAY_FILE,
    names=(STRAY, OTHER_FEED),
    kind=RuleClass.DUPLICATE,
    compares="the listing against committed files",
    endings={Level.L2: Ending.LISTING},
    verdicts=(Verdict.SUSPECTED,),
    not_when="names that every reader skips; staging; a batch that was committed meanwhile",
    remedy="moved to quarantine; by its number where it may be the only copy of its rows",
    one_cause=lambda found: found.subject,
    mending=Mending.QUARANTINE,
)


def stray_files(feed: str, topic: str, strays: Iterable[StrayFile]) -> tuple[Finding, ...]:
    """Each stray: a reader may count its rows twice, or find rows that nobody has committed."""
    return tuple(_stray_file(feed, topic, each) for each in strays)


def _stray_file(feed: str, topic: str, stray: StrayFile) -> Finding:
    cause = f"{stray.path} is under a path that readers read, and no committed batch owns it."
    step = f"Find out who wrote it; tallystick repair {feed} moves it to quarantine."
    evidence = {
        "path": stray.path,
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
    return finding(
        A9,
        Place.at_path(feed, topic, stray.path),
        name=STRAY,
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
        finding(
            A9,
            Place.at_path(feed, topic, directory),
            name=OTHER_FEED,
            cause=(
                f"feed {other} lands in {directory}, under a path that readers of feed {feed} read:"
                " they find its rows too."
            ),
            next_step=(
                f"Give feed {other} a target.root outside of this feed's directory. What it has"
                " landed is its own: no repair of this feed moves it."
            ),
            evidence={"directory": directory, "other_feed": other},
        )
        for directory, other in sorted(others.items())
    )
