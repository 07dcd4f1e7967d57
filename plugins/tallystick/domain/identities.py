"""Names of things, as types: whatever could be swapped by mistake has a type of its own.

Ids come in as arguments; nothing here makes one up.
"""

from __future__ import annotations

import re
from typing import Final, NewType

FeedName = NewType("FeedName", str)
PlanId = NewType("PlanId", int)
GenerationId = NewType("GenerationId", int)
BatchId = NewType("BatchId", str)
AttemptId = NewType("AttemptId", str)
FencingToken = NewType("FencingToken", int)
Owner = NewType("Owner", str)

# A batch or attempt id goes into an HDFS path and an SQL row: lower-case hexadecimal, nothing else.
ID_PATTERN: Final = re.compile(r"[0-9a-f]{16,32}")


def batch_id(text: str) -> BatchId:
    """The id, if it has the form of one; ValueError otherwise.

    >>> batch_id("0123456789abcdef")
    '0123456789abcdef'
    """
    if not ID_PATTERN.fullmatch(text):
        raise ValueError(f"{text!r} is no batch id: 16 to 32 hexadecimal characters")
    return BatchId(text)


def attempt_id(text: str) -> AttemptId:
    """The id, if it has the form of one; ValueError otherwise."""
    if not ID_PATTERN.fullmatch(text):
        raise ValueError(f"{text!r} is no attempt id: 16 to 32 hexadecimal characters")
    return AttemptId(text)
