"""HTML: one page that holds all it needs, and asks no network.

Every text goes through the template's escaping, or into data that only `textContent` reads. The
page's policy lets no script run but the two that are named by their hashes, and nothing load.
"""

from __future__ import annotations

import base64
import gzip
import json
from functools import cache
from hashlib import sha256
from typing import Final

from jinja2 import Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.document import PartitionPart, ReportDocument
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.verdicts import Verdict
from tallystick.report.frames import Report
from tallystick.report.plain_text import compared_lines
from tallystick.report.safe_text import script_json, visible_lines
from tallystick.report.templating import environment, page_asset
from tallystick.report.wording import (
    duration_text,
    grouped,
    instant_text,
    interval_text,
    place_text,
)

_SHOWN_FINDINGS: Final = 8
_WRITTEN_FINDINGS: Final = 200
_WRITTEN_PARTITIONS: Final = 50
_VERDICTS: Final = tuple(Verdict)


def html_page(report: Report) -> str:
    """The page: what can be read without scripts first, then charts and what is too long for it."""
    document = report.document
    findings = [finding_cells(each) for each in document.findings]
    by_number = {each.partition: each for each in document.partitions}
    partitions = [partition_cells(by_number[each]) for each in report.partitions["partition"]]
    counts = {
        verdict: sum(1 for each in document.findings if each.standing_verdict is verdict)
        for verdict in reversed(_VERDICTS)
    }
    return _template().render(
        document=document,
        counts={verdict: count for verdict, count in counts.items() if count},
        findings=findings[:_WRITTEN_FINDINGS],
        shown_findings=_SHOWN_FINDINGS,
        finding_total=len(findings),
        compared_lines=list(compared_lines(document)),
        partition_headers=_PARTITION_HEADERS,
        partitions=partitions[:_WRITTEN_PARTITIONS],
        partition_total=len(partitions),
        cells_shown=sorted(
            {cell for each in document.coverage.blocks for cell in each.verdicts},
            key=_VERDICTS.index,
        ),
        data=Markup(script_json(_chart_data(document))),
        rest=_packed({"findings": findings[_WRITTEN_FINDINGS:], "partitions": partitions}),
        style=Markup(page_asset("page.css")),
        script=Markup(page_asset("page.js")),
        library=Markup(_library()),
        policy=_policy(_library(), page_asset("page.js")),
    )


def finding_cells(finding: FindingPart) -> dict[str, str]:
    """A finding in texts, for the template and for the script alike."""
    seen = [
        f"level {finding.level.value}",
        *([f"generation {finding.generation}"] if finding.generation is not None else []),
        *([f"first seen {instant_text(finding.first_seen_at)}"] if finding.first_seen_at else []),
        *([f"confirmed {instant_text(finding.last_confirmed_at)}"]
          if finding.last_confirmed_at else []),
        *(["not on record"] if finding.number is None else []),
    ]  # fmt: skip
    number = "" if finding.number is None else f", finding {finding.number}"
    cells = {
        "verdict": finding.standing_verdict.value,
        "title": f"{finding.code} {finding.name}{number}",
        "place": place_text(finding),
        "cause": finding.cause,
        "next": "" if finding.is_waived else finding.next_step,
        "seen": ", ".join(seen),
        "subject": finding.subject,
        "evidence": json.dumps(finding.evidence, indent=1, sort_keys=True, ensure_ascii=False)
        if finding.evidence
        else "",
    }
    return {name: visible_lines(text) for name, text in cells.items()}  # the script has no filter


_PARTITION_HEADERS: Final = (
    "partition", "verdict", "generation", "complete up to", "frontier", "lag", "time to loss",
    "log start", "last stable", "high watermark", "rows", "control", "aborted", "compacted",
    "lost", "gaps", "checked L2", "checked L3",
)  # fmt: skip


def partition_cells(part: PartitionPart) -> list[str]:
    """A partition in texts, under `_PARTITION_HEADERS`."""
    gaps = " ".join(interval_text(each.from_offset, each.until_offset) for each in part.gaps)
    left = part.gap_offsets - sum(each.until_offset - each.from_offset for each in part.gaps)
    cells = [
        str(part.partition),
        part.verdict.value,
        str(part.generation) + ("" if part.state == "open" else f" {part.state}"),
        instant_text(part.complete_up_to),
        grouped(part.frontier),
        grouped(part.lag),
        duration_text(part.seconds_to_loss),
        grouped(part.log_start_offset),
        grouped(part.last_stable_offset),
        grouped(part.high_watermark),
        grouped(part.rows),
        *(grouped(part.holes.get(kind.value, 0)) for kind in HoleClass),
        grouped(part.lost),
        (gaps + (f" and {grouped(left)} more offsets" if left else "")) or "-",
        instant_text(part.checked_at.get("L2")),
        instant_text(part.checked_at.get("L3")),
    ]
    return [visible_lines(each) for each in cells]


def _chart_data(document: ReportDocument) -> dict[str, object]:
    """Numbers, instants and verdicts: no text from outside goes near the charts."""
    coverage = document.coverage
    return {
        "verdicts": [each.value for each in _VERDICTS],
        "edges": [each.isoformat() for each in coverage.edges],
        "blocks": [[each.first_partition, each.last_partition] for each in coverage.blocks],
        "cells": [
            "".join(str(_VERDICTS.index(cell)) for cell in each.verdicts)
            for each in coverage.blocks
        ],
        "counts": [each.counts for each in coverage.blocks],
        "produced": [each.produced for each in document.columns],
        "landed": [each.landed_offsets for each in document.columns],
        "rows": [each.landed_rows for each in document.columns],
        "holes": {
            kind.value: [each.holes.get(kind.value, 0) for each in document.columns]
            for kind in HoleClass
        },
        "band": {
            "at": [each.looked_at.isoformat() for each in document.band],
            "start": [each.log_start if each.is_whole else None for each in document.band],
            "frontier": [each.frontier for each in document.band],
            "stable": [each.last_stable if each.is_whole else None for each in document.band],
            "until": [each.high_watermark if each.is_whole else None for each in document.band],
        },
        "ages": [
            [each.level, each.from_seconds, each.until_seconds, each.batches, each.rows]
            for each in document.ages
        ],
    }


def _packed(value: object) -> str:
    """JSON, compressed: base64 holds nothing that a page could take for more than text."""
    text = json.dumps(value, separators=(",", ":")).encode()
    return base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()


def _policy(*scripts: str) -> str:
    """A content security policy: these scripts, and no address anywhere."""
    hashes = " ".join(f"'sha256-{_digest(each)}'" for each in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline';"
        " img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@cache
def _digest(script: str) -> str:
    return base64.b64encode(sha256(script.encode()).digest()).decode()


@cache
def _library() -> str:
    found: str = get_plotlyjs()
    return found


@cache
def _template() -> Template:
    return environment().from_string(page_asset("page.html"))
