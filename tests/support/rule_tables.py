"""The tables of rules and of endings in docs/reports.md, as the code says them.

`python -m tests.support.rule_tables` writes them between their marks in `docs/reports.md`.
"""

from __future__ import annotations

import textwrap
from typing import Final

from tallystick.domain.finding_codes import Level
from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.rule import Ending, Rule, SubjectKind
from tests.support.repository import DOCS

REPORTS: Final = DOCS / "reports.md"
_HEAD: Final = (
    "| code | name | class | compares | level | verdict | not when |\n" + "|---" * 7 + "|"
)


def with_tables(text: str) -> str:
    """The text with the tables of the code between its marks; ValueError where it lacks one."""
    for name, table in {"rules": _rules(), "endings": _endings()}.items():
        begin = f"<!-- {name}: written by tests/support/rule_tables.py -->"
        before, rest = text.split(begin)
        _, after = rest.split(f"<!-- end of {name} -->")
        text = f"{before}{begin}\n\n{table}\n\n<!-- end of {name} -->{after}"
    return text


def _rules() -> str:
    return "\n".join([_HEAD, *(f"| {' | '.join(_row(each))} |" for each in RULES)])


def _row(rule: Rule) -> tuple[str, ...]:
    return (
        rule.code.value,
        ": ".join(filter(None, [rule.name, ", ".join(rule.names)])),
        rule.kind.value,
        rule.compares,
        ", ".join(rule.levels),
        ", ".join(rule.verdicts),
        rule.not_when,
    )


def _endings() -> str:
    lines = []
    for ending in Ending:
        places = [
            rule.code.value + (_told(where) if len(set(rule.endings.values())) > 1 else "")
            for rule in RULES
            for where, by in rule.endings.items()
            if by is ending
        ]
        said = f"- {', '.join(places)}: {ending.value}."
        lines.append(textwrap.fill(said, 119, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines)


def _told(where: Level | SubjectKind) -> str:
    return f" at {where.value}" if isinstance(where, Level) else f" of {where.value}"


if __name__ == "__main__":
    REPORTS.write_text(with_tables(REPORTS.read_text()))
