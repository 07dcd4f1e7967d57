"""The four faces of a report by name: each is one text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tallystick.domain.report.document import ReportDocument
from tallystick.report.csv_table import csv_table
from tallystick.report.frames import Report
from tallystick.report.html_page import html_page
from tallystick.report.plain_text import plain_text


def json_document(report: Report) -> str:
    """The document itself, `tallystick-report-1`."""
    return report.document.to_json() + "\n"


FACES: Final[Mapping[str, Callable[[Report], str]]] = {
    "text": plain_text,
    "json": json_document,
    "csv": csv_table,
    "html": html_page,
}


def face_of(document: ReportDocument, name: str) -> str:
    """The document in one of `FACES`."""
    return FACES[name](Report(document))
