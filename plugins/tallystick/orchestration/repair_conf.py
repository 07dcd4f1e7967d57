"""The page writes the conf of a run of `repair_<feed>`; the DAG and the page read it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from tallystick.errors import ConfigurationError

MOST_NAMED: Final = 1_000
"""Findings of one repair, and digests of their evidence; more are repaired as all that are open."""


def _listed(one: str) -> str:
    return rf"^\s*({one}\s*(,\s*{one}\s*){{0,{MOST_NAMED - 1}}})?$"


NUMBERS: Final = _listed("[1-9][0-9]{0,17}")
"""None is larger than the ledger's numbers: of thousands of digits Python makes no number."""
DIGESTS: Final = _listed("[0-9a-fA-F]{8}")


def conf_of(
    numbers: Collection[int], digests: Collection[str], *, is_dry_run: bool
) -> dict[str, Any]:
    """Returns what the form of a repair would give.

    >>> conf_of([3, 4], ["0a1b2c3d"], is_dry_run=True)
    {'findings': '3, 4', 'evidence': '0a1b2c3d', 'dry_run': True}
    """
    return {
        "findings": ", ".join(map(str, numbers)) or None,
        "evidence": ", ".join(digests) or None,
        "dry_run": is_dry_run,
    }


def numbers_of(params: Mapping[str, Any]) -> tuple[int, ...]:
    """The findings that the form names; raises ConfigurationError for a text that names none.

    >>> numbers_of({"findings": "3, 4"}), numbers_of({})
    ((3, 4), ())
    """
    text = str(params.get("findings") or "")
    if not re.fullmatch(NUMBERS, text):
        wanted = f"{MOST_NAMED} numbers at most, separated by commas, or nothing"
        raise ConfigurationError("findings", text, wanted)
    return tuple(int(each) for each in re.findall(r"\d+", text))


def digests_of(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The digests that the form names; raises ConfigurationError for a text that names none.

    Without numbers they are of all the findings that were open when somebody read them.
    """
    text = str(params.get("evidence") or "")
    if not re.fullmatch(DIGESTS, text):
        wanted = f"{MOST_NAMED} digests at most, separated by commas, or nothing"
        raise ConfigurationError("evidence", text, wanted)
    return tuple(text.replace(",", " ").lower().split())
