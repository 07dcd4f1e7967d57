"""ListOffsets about any number of partitions: asked and answered in columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from struct import Struct
from typing import Final

from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

from tallystick.sources.bulk_request import (
    NO_REPLICA,
    NO_TAGS,
    BulkRequest,
    Reader,
    compact_string,
    packed,
    varint,
)

_HEAD: Final = Struct(">ib")
_ASKED: Final = Struct(">iiqB")
_THROTTLE_TIME: Final = Struct(">i")
_TOLD: Final = Struct(">ihqqi")


@dataclass(frozen=True, slots=True)
class ListedOffsets:
    """What one leader says of its partitions, as columns of one length."""

    throttle_time_ms: int
    partitions: Sequence[int] = ()
    error_codes: Sequence[int] = ()
    timestamps: Sequence[int] = ()
    offsets: Sequence[int] = ()

    def without(self, partitions: Collection[int]) -> ListedOffsets:
        """The same but for these partitions."""
        rows = zip(self.partitions, self.error_codes, self.timestamps, self.offsets, strict=True)
        kept = [each for each in rows if each[0] not in partitions]
        return ListedOffsets(self.throttle_time_ms, *zip(*kept, strict=True))


class ListOffsets(BulkRequest):
    """The offset at one timestamp, or sentinel, of partitions that one broker leads."""

    kind, answer_kind = ListOffsetsRequest, ListOffsetsResponse
    first_version, last_version = 6, 7

    def __init__(
        self, topic: str, epochs: Mapping[int, int], timestamp: int, isolation_level: int
    ) -> None:
        """`epochs` are the leaderships that are asked, by partition."""
        super().__init__()
        self._topic, self._epochs = topic, epochs
        self._timestamp, self._isolation_level = timestamp, isolation_level

    def body(self) -> bytes:
        """The request behind its header."""
        asked = zip(self._epochs, self._epochs.values(), repeat(self._timestamp), repeat(0))
        return b"".join(
            (
                _HEAD.pack(NO_REPLICA, self._isolation_level),
                varint(2) + compact_string(self._topic) + varint(len(self._epochs) + 1),
                packed(_ASKED, asked),
                NO_TAGS * 2,
            )
        )

    def answer(self, data: bytes) -> ListedOffsets:
        """What the leader says; ValueError where the answer has another layout."""
        reader = Reader(data)
        (throttle_time_ms,) = reader.fields(_THROTTLE_TIME)
        found = ListedOffsets(throttle_time_ms)
        for _ in range(reader.count()):
            reader.string()
            partitions, codes, times, offsets, _ = reader.columns(_TOLD, reader.count())
            reader.skip_tags()
            found = ListedOffsets(throttle_time_ms, partitions, codes, times, offsets)
        reader.end()
        return found
