"""The four faces of a report by name: each is one text."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from typing import Final

import pandas as pd

from tallystick.domain.report.document import ReportDocument
from tallystick.report.frames import Report
from tallystick.report.html_page import html_page
from tallystick.report.plain_text import plain_text
from tallystick.report.safe_text import spreadsheet_cell


def json_document(report: Report) -> str:
    """The document itself, `tallystick-report-1`."""
    return report.document.to_json() + "\n"


def csv_table(report: Report) -> str:
    """Findings and partitions in one table, told apart by its first column, each worst first.

    No spreadsheet takes a text in it for a formula.
    """
    document = report.document
    findings = report.findings.drop(columns=["feed", "topic"])
    tables = [_marked("finding", findings), _marked("partition", report.partitions)]
    names = list(dict.fromkeys(name for each in tables for name in each.columns))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([names[0], "feed", "topic", "taken_at", *names[1:]])
    about = [spreadsheet_cell(each) for each in
             (document.feed, document.topic, document.taken_at.isoformat())]  # fmt: skip
    for table in tables:
        missing = [name for name in names if name not in table.columns]
        whole = table.assign(**dict.fromkeys(missing)) if missing else table
        for kind, *rest in whole[names].itertuples(index=False, name=None):
            writer.writerow([kind, *about, *(spreadsheet_cell(each) for each in rest)])
    return out.getvalue()


def _marked(kind: str, frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(kind=kind)[["kind", *frame.columns]]


FACES: Final[Mapping[str, Callable[[Report], str]]] = {
    "text": plain_text,
    "json": json_document,
    "csv": csv_table,
    "html": html_page,
}


def face_of(document: ReportDocument, name: str) -> str:
    """The document in one of `FACES`."""
    return FACES[name](Report(document))
