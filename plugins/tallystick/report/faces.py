"""The four faces of a report by name: each is one text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Final

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.document import PartitionPart, ReportDocument
from tallystick.domain.report.finding_part import FindingPart
from tallystick.report.html_page import html_page
from tallystick.report.plain_text import plain_text
from tallystick.report.safe_text import spreadsheet_cell

if TYPE_CHECKING:
    import pandas as pd


def json_document(document: ReportDocument) -> str:
    """The document itself, `tallystick-report-1`."""
    return document.to_json() + "\n"


def csv_table(document: ReportDocument) -> str:
    """Findings and partitions in one table, told apart by its first column, each worst first.

    No spreadsheet takes a text in it for a formula.
    """
    import pandas as pd  # takes a second, and the other faces need none

    findings = _frame("finding", FindingPart, document.findings).drop(columns=["feed", "topic"])
    for name in ("evidence", "waiver", "extent"):
        findings[name] = [each and json.dumps(each, sort_keys=True) for each in findings[name]]
    worst_first = document.worst_first
    partitions = _frame("partition", PartitionPart, worst_first)
    for kind in HoleClass:
        partitions[kind.value] = [each.holes.get(kind.value, 0) for each in worst_first]
    for level in ("L1", "L2", "L3"):
        checked = [to_plain(each.checked_at.get(level)) for each in worst_first]
        partitions[f"checked_{level}"] = checked
    partitions = partitions.drop(columns=["holes", "checked_at", "gaps"])
    table = pd.concat([findings, partitions])
    for place, name in enumerate(("feed", "topic", "taken_at"), start=1):
        table.insert(place, name, to_plain(getattr(document, name)))
    return table.map(spreadsheet_cell).to_csv(index=False, lineterminator="\r\n")


def _frame(kind: str, part: type, parts: Sequence[object]) -> pd.DataFrame:
    """The parts as rows; whole numbers stay whole where some are missing."""
    import pandas as pd

    names = [each.name for each in fields(part)]
    rows = [[kind, *(to_plain(getattr(each, name)) for name in names)] for each in parts]
    return pd.DataFrame(rows, columns=["kind", *names], dtype=object)


FACES: Final[Mapping[str, Callable[[ReportDocument], str]]] = {
    "text": plain_text,
    "json": json_document,
    "csv": csv_table,
    "html": html_page,
}


def face_of(document: ReportDocument, name: str) -> str:
    """The document in one of `FACES`."""
    return FACES[name](document)
