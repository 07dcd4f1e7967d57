"""The page that names every licence, as Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from jinja2 import Environment, StrictUndefined

from sandbox.licences.looked_up import BUILD, DEBIAN, IMAGES, OTHERS

_COPYLEFT: Final = re.compile(r"GPL|MPL|EPL|CDDL")


def page(packages: Mapping[str, str], connector: Mapping[str, str], jars: Mapping[str, str]) -> str:
    """The whole page, with what a person has looked up; each part comes with its licence."""
    # Markdown: nothing is escaped.
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    template = environment.from_string((Path(__file__).parent / "licences.md.jinja").read_text())
    return template.render(
        digest=digest_of([*packages, *OTHERS, *connector, *jars]),
        packages=_table({part.split()[0]: each for part, each in {**packages, **OTHERS}.items()}),
        connector=_table(connector),
        jars=_table(jars, counts="jars"),
        debian=_table(DEBIAN),
        images=_table(IMAGES),
        build=_table(BUILD),
    )


def digest_of(parts: Iterable[str]) -> str:
    """What tells these parts, in their versions, from any others."""
    return sha256("\n".join(sorted(set(parts))).encode()).hexdigest()


def _table(parts: Mapping[str, str], *, counts: str = "") -> str:
    """A row for each licence, those with copyleft first; parts under others are perhaps counted."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in sorted(parts):
        names[parts[name]].append(name)
    ordered = sorted(names, key=lambda each: (not _COPYLEFT.search(each), each))
    rows = [
        f"| {licence} | {len(names[licence])} {counts} |"
        if counts and not _COPYLEFT.search(licence)
        else f"| {licence} | {', '.join(names[licence])} |"
        for licence in ordered
    ]
    return "\n".join(["| licence | parts |", "|---|---|", *rows])
