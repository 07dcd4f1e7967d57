"""What JSON documents are made of, those of the command line and of the page's routes.

A document holds the ledger's own values where they say what a reader needs, under their own names;
a part is a class here only where it says something else. docs/cli.md and docs/page.md describe
every field. Offsets are half-open: `from_offset` is included, `until_offset` is not. Instants are
ISO 8601 in UTC. `finding` and `findings` hold findings, always of one shape; `finding_id` and
`finding_ids` hold their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, dataclass_transform

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.troubles import same_trouble
from tallystick.domain.rules.stored_finding import StoredFinding


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Part:
    """A part of a document: a frozen dataclass whose fields are given by name."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    def but(self, **changes: Any) -> Self:
        """The same with other values in these fields."""
        return type(self)(**(vars(self) | changes))


class Document(Part):
    """One whole document; `format` names it and its version."""

    def as_json(self) -> str:
        """The document on several lines, keys in a fixed order."""
        return json.dumps(to_plain(self), indent=2)


class RangePart(Part):
    """Offsets of one partition."""

    partition: int
    from_offset: int
    until_offset: int


class ErrorDetails(Part):
    """What stopped a command, or one batch."""

    kind: str
    what: str
    next_step: str
    may_retry: bool
    problems: Sequence[str] = ()
    """Of feed files, one line each."""


class ErrorDocument(Document):
    """Instead of the command's own document, when it could not be made."""

    format: str = "tallystick-error-1"
    error: ErrorDetails
    exit_code: int


class ExplainDocument(Document):
    """A finding with its rule: `explain`, `waive`, `unwaive`."""

    format: str = "tallystick-explain-1"
    finding: FindingPart
    finding_ids: Sequence[int]
    """Of the standing findings of the same trouble, its own too while it stands."""
    waiver_evidence: Mapping[int, str]
    """By number, the digests of those of them that one waiver accepts, or that are accepted: its
    own, and others in the same state."""
    compares: str
    not_when: str
    remedy: str


def explained(
    found: StoredFinding, told: FindingPart, standing: Sequence[StoredFinding]
) -> ExplainDocument:
    """The finding with its rule; `standing` are those of its feed."""
    rule, trouble = found.finding.rule, same_trouble(found, standing)
    alike = {each.finding_id: each.digest for each in trouble if each.state is found.state}
    return ExplainDocument(
        finding=told,
        finding_ids=[each.finding_id for each in trouble],
        waiver_evidence={**alike, found.finding_id: found.digest},
        compares=rule.compares,
        not_when=rule.not_when,
        remedy=rule.remedy,
    )


def range_part(offsets: OffsetRange) -> RangePart:
    """Offsets of one partition."""
    return RangePart(
        partition=offsets.partition.partition,
        from_offset=offsets.from_offset,
        until_offset=offsets.until_offset,
    )


def holes_part(holes: Mapping[HoleClass, int]) -> dict[str, int]:
    """Holes by class, every class named."""
    return {kind.value: holes.get(kind, 0) for kind in HoleClass}
