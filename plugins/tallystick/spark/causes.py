"""Says in one line why Spark failed: its errors carry hundreds of lines of stack, with the cause
near the end.
"""

from __future__ import annotations

import re
from typing import Final

LIMIT: Final = 1000
_STACK_LINE: Final = re.compile(r"^\s+(at |\.\.\. \d+ (more|common frames))")
_CALL_LINE: Final = re.compile(r"^An error occurred while calling \S+\.?$")
_LOST_TASK: Final = re.compile(r"^.*Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): ")
_CAUSED_BY: Final = re.compile(r"^Caused by: ", re.MULTILINE)
_END_OF_MESSAGE: Final = re.compile(r"\n\s*(Driver stacktrace:|JVM stacktrace:|Suppressed: )")


def record_failure_of(error: BaseException) -> str:
    """Says why reading records failed, the same for the same record: no task, stage or host."""
    return _LOST_TASK.sub("", failure_of(error), count=1)


def failure_of(error: BaseException) -> str:
    """The error in one line; its class is left out where it only says that Java was called."""
    name, cause = type(error).__name__, cause_of(str(error))
    return cause if name == "Py4JJavaError" else f"{name}: {cause}"


def cause_of(text: str) -> str:
    r"""Tells the first report, and the innermost cause if that is another; one line, bounded.

    >>> cause_of("Job aborted.\n\tat a.B(C.scala:1)\nCaused by: IOException: disk full\n\tat d.E()")
    'Job aborted.; caused by IOException: disk full'
    """
    lines = [
        line
        for line in text.splitlines()
        if not (_STACK_LINE.match(line) or _CALL_LINE.match(line))
    ]
    blocks = [_one_line(block) for block in _CAUSED_BY.split("\n".join(lines))]
    told, innermost = blocks[0], blocks[-1]
    if len(told) > LIMIT // 2:
        told = told[: LIMIT // 2] + " ..."
    if innermost in blocks[0]:
        return told or "no reason was given"
    return f"{told}; caused by {innermost}"[:LIMIT]


def _one_line(block: str) -> str:
    """The block's message without line breaks and without the colon that py4j puts in front."""
    message = _END_OF_MESSAGE.split(block, maxsplit=1)[0]
    return " ".join(message.split()).removeprefix(": ")
