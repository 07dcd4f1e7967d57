"""The chart of `docs/performance.md`, as SVG: aims, ways to land the same records, and growth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from bench.results import Measured, Result, shown

_WIDTH: Final = 880
_NAMES: Final = 350
"""Where names end and drawing begins."""
_ROW: Final = 18
_KEPT, _MISSED, _WALL, _CPU = "#2166ac", "#b2182b", "#92c5de", "#2166ac"
_STYLE: Final = (
    "text{font:12px sans-serif;fill:#222}.head{font-weight:bold;font-size:14px}"
    ".end{text-anchor:end}.middle{text-anchor:middle}.small{font-size:11px;fill:#555}"
)
_SHARES: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def drawing_of(results: Mapping[str, Result]) -> str:
    """All panels, one below the other; a bench that has no result has no panel."""
    parts: list[str] = []
    top = 0
    for panel in (_aims(results), _ways(results), _growth(results)):
        height, lines = panel
        parts += [f'<g transform="translate(0,{top})">', *lines, "</g>"] if lines else []
        top += height
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}"'
            f' width="{_WIDTH}" height="{top}" role="img"'
            ' aria-label="What the benches measured, against what was aimed at">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{_WIDTH}" height="{top}" fill="#fff"/>',
            *parts,
            "</svg>",
            "",
        ]
    )


def _aims(results: Mapping[str, Result]) -> tuple[int, list[str]]:
    rows = [
        (result.name, each, share)
        for result in results.values()
        for each in result.measured
        if (share := each.share_of_aim) is not None
    ]
    head = "Measured, as a share of the aim: left of the line the aim is kept"
    bottom = 48 + _ROW * len(rows)
    lines = [_text(12, 22, head, "head")]
    for share in _SHARES:
        x = _place(share)
        colour = "#222" if share == 1 else "#ddd"
        lines += [_line(x, 36, x, bottom, colour), _text(x, bottom + 14, f"{share:g}", "middle")]
    for number, (name, each, share) in enumerate(rows):
        lines += _dot(48 + _ROW * number, name, each, share)
    return bottom + 34, lines if rows else []


def _dot(y: int, name: str, each: Measured, share: float) -> Iterator[str]:
    x = _place(share)
    yield _text(_NAMES - 10, y + 4, f"{name}: {each.what}", "end")
    yield f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{_KEPT if share <= 1 else _MISSED}"/>'
    # Beside the dot, and not across the line of the aim.
    side, where = (-9, "end small") if 0.4 < share <= 1 else (9, "small")
    yield _text(x + side, y + 4, f"{shown(each.is_, each.unit)}, {each.aim}", where)


def _place(share: float) -> float:
    """On an axis of logarithms; what lies beyond its ends is drawn there."""
    low, high = _SHARES[0], _SHARES[-1]
    part = math.log(min(high, max(low, share)) / low, high / low)
    return _NAMES + 10 + part * (_WIDTH - _NAMES - 30)


def _ways(results: Mapping[str, Result]) -> tuple[int, list[str]]:
    result = results.get("throughput")
    if result is None:
        return 0, []
    ways = {
        way: (each["wall_seconds"], each["cpu_seconds"])
        for way, each in result.figures.items()
        if isinstance(each, Mapping)
    }
    records, size = result.figures["records"], result.figures["bytes"]
    what = f"{shown(records)} records of {size} bytes"
    head = f"Seconds for {what}: light by the clock, dark of CPU"
    most = max(max(each) for each in ways.values())
    lines = [_text(12, 22, head, "head")]
    for number, (way, pair) in enumerate(ways.items()):
        y = 40 + 34 * number
        lines.append(_text(_NAMES - 10, y + 18, way, "end"))
        for place, (seconds, colour) in enumerate(zip(pair, (_WALL, _CPU), strict=True)):
            width = seconds / most * (_WIDTH - _NAMES - 80)
            box = f'x="{_NAMES}" y="{y + 13 * place}" width="{width:.1f}" height="12"'
            lines.append(f'<rect {box} fill="{colour}"/>')
            lines.append(_text(_NAMES + width + 6, y + 13 * place + 10, f"{seconds:.1f}", "small"))
    return 40 + 34 * len(ways) + 20, lines


def _growth(results: Mapping[str, Result]) -> tuple[int, list[str]]:
    result = results.get("growth")
    if result is None:
        return 0, []
    lines = [_text(12, 22, "CPU seconds of a landing; dashed: in line with its size", "head")]
    for place, kind in enumerate(("records", "partitions")):
        found = {
            int(name.rpartition("_")[2]): each["cpu_seconds"]
            for name, each in result.figures.items()
            if name.startswith(f"{kind}_")
        }
        lines += _curve(60 + place * (_WIDTH // 2), kind, sorted(found.items()))
    return 280, lines


def _curve(left: int, kind: str, points: Sequence[tuple[int, float]]) -> Iterator[str]:
    """Both axes have logarithms, a decade as long on one as on the other."""
    (first, lowest), (last, highest) = points[0], points[-1]
    decades = math.log10(last / first), math.log10(highest / lowest)
    decade = min(110.0, 330 / max(1.0, decades[0]), 190 / max(1.0, decades[1]))

    def at(size: float, seconds: float) -> tuple[float, float]:
        across, up = math.log10(size / first), math.log10(seconds / lowest)
        return left + decade * across, 240 - decade * up

    # Back from the last point as far as the drawing goes.
    share = max(first / last, lowest / highest)
    yield _line(*at(last * share, highest * share), *at(last, highest), "#999", dashes="4 4")
    places = [at(*each) for each in points]
    way = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    yield f'<polyline points="{way}" fill="none" stroke="{_CPU}" stroke-width="2"/>'
    for (size, seconds), (x, y) in zip(points, places, strict=True):
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_CPU}"/>'
        yield _text(x - 7, y - 8, f"{seconds:.1f} s", "end small")
        yield _text(x, 262, shown(size), "middle small")
    yield _text(left + 350, 262, kind, "small end")


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y}" class="{kind}">{escape(text)}</text>'


def _line(x: float, y: float, x2: float, y2: float, colour: str, *, dashes: str = "") -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-dasharray="{dashes}"/>'
