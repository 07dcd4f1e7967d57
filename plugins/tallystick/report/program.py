"""The command has another name where a text is read. Errors, findings and the ledger call it
`tallystick`, whoever reads them later.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Final

PROGRAM_SETTING: Final = "TALLYSTICK_PROGRAM"
COMMANDS: Final = (
    "feed", "doctor", "plan", "land", "batches", "files", "reconcile", "report", "complete",
    "findings", "explain", "repair", "waive", "kafka-secrets", "ledger", "jars",
)  # fmt: skip
_CALL: Final = re.compile(rf"(?<![\w./-])tallystick (?=(?:{'|'.join(COMMANDS)})\b)")


def as_called(text: str) -> str:
    """The text with each command of ours as it is called here; a second time changes nothing."""
    if "tallystick " not in text:
        return text
    called = program()

    def named(match: re.Match[str]) -> str:
        is_named = text.endswith(called, 0, match.end() - 1)
        return match[0] if is_named else f"{called} "

    return _CALL.sub(named, text)


def program() -> str:
    """The program's name: the setting's, else the wheel's script, else the plugins folder's way."""
    return os.environ.get(PROGRAM_SETTING) or _installed()


@cache
def _installed() -> str:
    from importlib.metadata import PackageNotFoundError, distribution  # seldom asked, and slow

    try:
        distribution("tallystick")
    except PackageNotFoundError:
        return "python -m tallystick"
    return "tallystick"
