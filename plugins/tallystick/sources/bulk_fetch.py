"""Fetch from any number of partitions: places packed as columns, records handed on as they came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from kafka.protocol.consumer import FetchRequest, FetchResponse

from tallystick.sources.bulk_request import (
    NO_REPLICA,
    BulkRequest,
    Reader,
    packed,
    short_string,
)

_ANY_BYTES: Final = 2**31 - 1
_NO_SESSION: Final = (0, -1)
_HEAD: Final = Struct(">iiiibii")
_COUNT: Final = Struct(">i")
_ASKED: Final = Struct(">iiqqi")
_ANSWER: Final = Struct(">ihi")
_TOLD: Final = Struct(">ihqqqi")
_ABORTED: Final = Struct(">qq")


class FetchPlace(NamedTuple):
    """Where to fetch in one partition."""

    partition: int
    leader_epoch: int
    """Of the leadership that is asked."""
    offset: int
    max_bytes: int


class FetchedPart(NamedTuple):
    """What a leader gives of one partition."""

    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    aborted: Sequence[tuple[int, int]]
    """Producer and first offset of each."""
    records: bytes


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one leader gives."""

    throttle_time_ms: int
    error_code: int
    parts: Sequence[FetchedPart]


class Fetch(BulkRequest):
    """Record batches of partitions that one broker leads: what is there, without a session."""

    kind, answer_kind = FetchRequest, FetchResponse
    # From 11 on a leader may send us to a replica, with an answer that looks empty.
    first_version = last_version = 10

    def __init__(self, topic: str, places: Sequence[FetchPlace], isolation_level: int) -> None:
        super().__init__()
        self._topic, self._places, self._isolation_level = topic, places, isolation_level

    def body(self) -> bytes:
        """The request behind its header."""
        # Bounded by partition: a bound here would starve those behind one oversized batch.
        bounds = (NO_REPLICA, 0, 0, _ANY_BYTES, self._isolation_level, *_NO_SESSION)
        asked = ((each, epoch, offset, -1, most) for each, epoch, offset, most in self._places)
        return b"".join(
            (
                _HEAD.pack(*bounds),
                _COUNT.pack(1) + short_string(self._topic) + _COUNT.pack(len(self._places)),
                packed(_ASKED, asked),
                _COUNT.pack(0),
            )
        )

    def answer(self, data: bytes) -> Fetched:
        """What the leader gives; ValueError where the answer has another layout."""
        reader = Reader(data, is_compact=False)
        throttle_time_ms, error_code, _ = reader.fields(_ANSWER)
        parts = []
        for _ in range(reader.count()):
            reader.string()
            for _ in range(reader.count()):
                partition, code, high, stable, _, aborted = reader.fields(_TOLD)
                transactions = [reader.fields(_ABORTED) for _ in range(aborted)]
                records = reader.bytes(reader.count())
                parts.append(FetchedPart(partition, code, high, stable, transactions, records))
        reader.end()
        return Fetched(throttle_time_ms, error_code, parts)
