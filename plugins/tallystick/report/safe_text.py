"""Texts from outside, made harmless for where they are shown. Every face says nothing but these.

Topics, headers, file names and errors of other programs may hold anything. Our own command is
called as it is where the text is read: errors, findings and the ledger call it `tallystick`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from functools import cache
from typing import Final

PROGRAM_SETTING: Final = "TALLYSTICK_PROGRAM"
COMMANDS: Final = (
    "feed", "doctor", "plan", "land", "batches", "files", "reconcile", "report", "complete",
    "findings", "explain", "repair", "waive", "unwaive", "kafka-secrets", "ledger", "jars",
)  # fmt: skip
_CALL: Final = re.compile(rf"(?<![\w./-])tallystick (?=(?:{'|'.join(COMMANDS)})\b)")
# What a spreadsheet takes for the start of a formula, also behind white space that it strips.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "|", "%")
_STRIPPED: Final = ("\t", "\r", "\n")
# Turn the direction of a line, or can't be seen: a path could read as another one.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def visible(text: str) -> str:
    r"""The text with whatever a terminal would act on, or nobody would see, spelled out.

    Commands of ours are called as they are here.

    >>> visible("a\x1b[2Jb\u202e")
    'a\\x1b[2Jb\\u202e'
    """
    text = as_called(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        _spelled(each) if unicodedata.category(each) in _INVISIBLE else each for each in text
    )


def visible_lines(text: str) -> str:
    """The text with its line breaks kept, and everything else as `visible` gives it."""
    return "\n".join(visible(line) for line in text.split("\n"))


def _spelled(character: str) -> str:
    number = ord(character)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def spreadsheet_cell(value: object) -> str:
    """The value for a CSV cell: a text that a spreadsheet would calculate gets a quote before it.

    >>> spreadsheet_cell("=1+1"), spreadsheet_cell(-5), spreadsheet_cell(None)
    ("'=1+1", '-5', '')
    """
    if value is None or value != value:  # a missing number is not equal to itself
        return ""
    if not isinstance(value, str):
        return str(value)
    # Full-width forms of the same signs calculate too, in some languages of some programs.
    first = unicodedata.normalize("NFKC", value.lstrip()[:1])
    quote = "'" if first in _FORMULA_STARTS or value[:1] in _STRIPPED else ""
    return quote + visible(value)


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
