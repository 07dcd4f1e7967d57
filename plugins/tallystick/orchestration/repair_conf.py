"""What a run of `repair_<feed>` is given: written by the page, read by the DAG and the page."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from tallystick.errors import ConfigurationError

NUMBERS: Final = r"^\s*([0-9]{1,18}\s*(,\s*[0-9]{1,18}\s*)*)?$"
"""None is larger than the ledger's numbers: of thousands of digits Python makes no number."""
DIGESTS: Final = r"^\s*([0-9a-fA-F]{8}\s*(,\s*[0-9a-fA-F]{8}\s*)*)?$"


def conf_of(
    numbers: Collection[int], digests: Collection[str], *, is_dry_run: bool
) -> dict[str, Any]:
    """What the form of a repair would give.

    >>> conf_of([3, 4], ["0a1b2c3d"], is_dry_run=True)
    {'findings': '3, 4', 'evidence': '0a1b2c3d', 'dry_run': True}
    """
    return {
        "findings": ", ".join(map(str, numbers)) or None,
        "evidence": ", ".join(digests) or None,
        "dry_run": is_dry_run,
    }


def numbers_of(params: Mapping[str, Any]) -> tuple[int, ...]:
    """The findings that the form names; raises ConfigurationError for a text that names none."""
    text = str(params.get("findings") or "")
    if not re.fullmatch(NUMBERS, text):
        raise ConfigurationError("findings", text, "numbers separated by commas, or nothing")
    return tuple(int(each) for each in re.findall(r"\d+", text))


def digests_of(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The digests that the form names; raises ConfigurationError where no finding is named, too."""
    digests = tuple(str(params.get("evidence") or "").replace(",", " ").lower().split())
    if digests and not numbers_of(params):
        raise ConfigurationError("evidence", " ".join(digests), "the numbers of findings beside it")
    return digests
