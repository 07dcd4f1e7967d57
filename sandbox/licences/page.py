"""The page that names every licence, as Markdown."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
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
        packages=_table({**packages, **OTHERS}),
        connector=_table(connector),
        jars=_table(jars),
        debian=_table(DEBIAN),
        images=_table(IMAGES),
        build=_table(BUILD),
    )


def _table(parts: Mapping[str, str]) -> str:
    """A row for each licence, those with copyleft first."""
    names: dict[str, list[str]] = defaultdict(list)
    for name in sorted(parts):
        names[parts[name]].append(name)
    ordered = sorted(names, key=lambda each: (not _COPYLEFT.search(each), each))
    rows = [f"| {licence} | {', '.join(names[licence])} |" for licence in ordered]
    return "\n".join(["| licence | parts |", "|---|---|", *rows])
