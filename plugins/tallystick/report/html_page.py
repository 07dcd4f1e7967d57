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
from importlib.resources import files
from typing import Final

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.document import PartitionPart, ReportDocument
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.troubles import Trouble, named_findings, troubles_of
from tallystick.domain.verdicts import Verdict
from tallystick.report.charts import drawn
from tallystick.report.plain_text import compared_lines
from tallystick.report.safe_text import visible_lines
from tallystick.report.wording import (
    by_text,
    concern_text,
    counted,
    duration_text,
    extent_text,
    grouped,
    in_short,
    instant_text,
    interval_text,
    late_text,
    long_names_in,
    place_text,
    places_text,
    troubles_text,
    window_text,
    with_capital,
)

_SHOWN_FINDINGS: Final = 8
_WRITTEN_FINDINGS: Final = 200
_WRITTEN_PLACES: Final = 50
_WRITTEN_PARTITIONS: Final = 50
_VERDICTS: Final = tuple(Verdict)


def html_page(document: ReportDocument) -> str:
    """The page: first what needs no script, then what is too long for it."""
    troubles = troubles_of(document.findings)
    findings = [trouble_cells(each) for each in troubles]
    partitions = [partition_cells(each) for each in document.worst_first]
    counts = {
        verdict: sum(1 for each in troubles if each.verdict is verdict)
        for verdict in reversed(_VERDICTS)
    }
    return _template().render(
        document=document,
        counts={verdict: count for verdict, count in counts.items() if count},
        findings=findings[:_WRITTEN_FINDINGS],
        shown_findings=_SHOWN_FINDINGS,
        trouble_total=len(troubles),
        compared_lines=list(compared_lines(document)),
        partition_headers=_PARTITION_HEADERS,
        partitions=partitions[:_WRITTEN_PARTITIONS],
        partition_total=len(partitions),
        drawn=drawn(
            document.taken_at, document.coverage, document.columns, document.band, document.ages
        ),
        rest=_packed({"findings": findings[_WRITTEN_FINDINGS:], "partitions": partitions}),
        style=Markup(page_asset("page.css")),
        script=Markup(page_asset("page.js")),
        plots=Markup(page_asset("plots.js")),
        policy=_policy(page_asset("plots.js"), page_asset("page.js")),
    )


def trouble_cells(trouble: Trouble) -> dict[str, str]:
    """A trouble in texts, for the template and for the script alike."""
    worst = trouble.worst
    numbers = f", {named_findings(trouble.numbers)}" if trouble.numbers else ""
    causes = " ".join(each.cause for each in trouble.by_rule)
    cells = {
        "verdict": trouble.verdict.value,
        "title": f"{', '.join(f'{each.code} {each.name}' for each in trouble.by_rule)}{numbers}",
        "place": extent_text(trouble),
        "cause": " ".join(filter(None, [concern_text(trouble), with_capital(in_short(causes))])),
        "next": " ".join(trouble.next_steps),
        "seen": _seen(worst) if len(trouble.findings) == 1 else _each_place(trouble),
        "subject": "\n".join(dict.fromkeys(filter(None, [worst.subject, *long_names_in(causes)]))),
        "evidence": _evidence(trouble),
    }
    return {name: visible_lines(text) for name, text in cells.items()}  # the script has no filter


def _seen(finding: FindingPart) -> str:
    seen = [
        f"level {finding.level.value}",
        *([f"generation {finding.generation}"] if finding.generation is not None else []),
        *([f"first seen {instant_text(finding.first_seen_at)}"] if finding.first_seen_at else []),
        *([f"confirmed {instant_text(finding.last_confirmed_at)}"]
          if finding.last_confirmed_at else []),
        *(["not on record"] if finding.number is None else []),
    ]  # fmt: skip
    return ", ".join(seen)


def _each_place(trouble: Trouble) -> str:
    """Each finding in a line: its number, its place, and when it was seen."""
    lines = [
        f"{'not on record' if each.number is None else each.number}: {each.code}"
        f" {place_text(each)}, {_seen(each)}"
        for each in trouble.findings[:_WRITTEN_PLACES]
    ]
    left = len(trouble.findings) - len(lines)
    return "\n".join([*lines, *([f"and {grouped(left)} more"] if left else [])])


def _evidence(trouble: Trouble) -> str:
    """Returns what each finding rests on, each evidence once."""
    shown = (
        json.dumps(each.evidence, indent=1, sort_keys=True, ensure_ascii=False)
        for each in trouble.findings[:_WRITTEN_PLACES]
        if each.evidence
    )
    return "\n".join(dict.fromkeys(shown))


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
def _template() -> Template:
    return environment(PackageLoader("tallystick.report", "page")).get_template("page.html")


def environment(loader: BaseLoader | None = None) -> Environment:
    """Where templates are made; they have our words for numbers, instants and places."""
    made = Environment(
        loader=loader,
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["instant"] = instant_text
    made.filters["by"] = by_text
    made.filters["late"] = late_text
    made.filters["window"] = window_text
    made.filters["grouped"] = grouped
    made.filters["duration"] = duration_text
    made.filters["place"] = place_text
    made.filters["extent"] = extent_text
    made.filters["places"] = places_text
    made.filters["concern"] = concern_text
    made.filters["capital"] = with_capital
    made.filters["in_short"] = in_short
    made.filters["long_names"] = long_names_in
    made.globals["interval"] = interval_text
    made.globals["counted"] = counted
    made.globals["troubles_text"] = troubles_text
    return made


@cache
def page_asset(name: str) -> str:
    """The text of a file of the report's page: pages beside it show the same things."""
    return (files("tallystick.report") / "page" / name).read_text(encoding="utf-8")


def _harmless(value: object) -> object:
    """What a template writes: every text without what can't be seen; it is escaped after this."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return visible_lines(str(value)) if is_text else value
