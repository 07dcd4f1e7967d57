"""CSV: findings and partitions in one table, told apart by its first column."""

from __future__ import annotations

import csv
import io

import pandas as pd

from tallystick.report.frames import Report
from tallystick.report.safe_text import spreadsheet_cell


def csv_table(report: Report) -> str:
    """All findings, worst first, then all partitions, worst first; no text that calculates."""
    document = report.document
    tables = [_marked("finding", report.findings), _marked("partition", report.partitions)]
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
