"""What benches printed last, and the tables that `docs/performance.md` makes of it.

A result is one line of JSON, as `measured.print_result` writes it. Of each bench the last line of
the file counts; the lines before it are history.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PLACES: Final = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of a bench, and what it is meant to be."""

    what: str
    is_: float
    at_most: float | None
    at_least: float | None
    unit: str
    """Empty for a ratio."""

    @property
    def is_kept(self) -> bool | None:
        """None where nothing was aimed at."""
        if self.at_most is not None:
            return self.is_ <= self.at_most
        return None if self.at_least is None else self.is_ >= self.at_least

    @property
    def share_of_aim(self) -> float | None:
        """At most 1 where the aim is kept; None without one, or where it is 0."""
        if self.at_most:
            return self.is_ / self.at_most
        if self.at_least:
            return self.at_least / self.is_ if self.is_ else math.inf
        return None

    @property
    def aim(self) -> str:
        """In words."""
        if self.at_most is not None:
            return f"at most {shown(self.at_most, self.unit)}"
        return "" if self.at_least is None else f"at least {shown(self.at_least, self.unit)}"


@dataclass(frozen=True, slots=True)
class Result:
    """The last line of a bench."""

    name: str
    command: str
    commit: str
    machine: Mapping[str, Any]
    pairs: int
    figures: Mapping[str, Any]
    measured: tuple[Measured, ...]

    @classmethod
    def of(cls, line: str) -> Result:
        """The line, read; KeyError or ValueError when it is none."""
        found = json.loads(line)
        return cls(
            name=found["name"],
            command=found["command"],
            commit=found["commit"],
            machine=found["machine"],
            pairs=found["pairs"],
            figures=found["figures"],
            measured=tuple(
                Measured(
                    what.replace("_", " "),
                    each["is"],
                    each.get("at_most"),
                    each.get("at_least"),
                    each.get("unit", ""),
                )
                for what, each in found["ratios"].items()
            ),
        )

    @property
    def aimed_at(self) -> list[Measured]:
        """Those that have an aim."""
        return [each for each in self.measured if each.is_kept is not None]

    @property
    def place(self) -> str:
        """The machine, shortly."""
        machine = self.machine
        size = f"{machine['cores']} cores, {machine['memory_gib']} GiB"
        return f"{size}, load {machine['load_before']}"


def results_in(file: Path) -> dict[str, Result]:
    """By bench, in the order of their names."""
    read = [Result.of(line) for line in file.read_text().splitlines()]
    return dict(sorted({each.name: each for each in read}.items()))


def last_line(log: Path) -> str:
    """What a bench printed last; SystemExit when that is no result."""
    lines = log.read_text().splitlines() or [""]
    try:
        Result.of(lines[-1])
    except (ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{log}: its last line is no result of a bench") from error
    return lines[-1]


def shown(value: float, unit: str = "") -> str:
    """A number for people: three places, large ones in groups."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{round(value, _PLACES):g}"
    return f"{text.replace(',', ' ')} {unit}".rstrip()


def aims_table(results: Iterable[Result]) -> str:
    """A row for each figure with an aim; bad news is bold. How it was taken stands once a bench."""
    return _table(
        ("bench", "what", "measured", "aim", "kept", "pairs, commit, machine"),
        (
            (
                f"`{result.name}`",
                each.what,
                shown(each.is_, each.unit),
                each.aim,
                "yes" if each.is_kept else "**no**",
                "" if place else f"{result.pairs}, {result.commit}, {result.place}",
            )
            for result in results
            for place, each in enumerate(result.aimed_at)
        ),
    )


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = tuple(heads)
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
