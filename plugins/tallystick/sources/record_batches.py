"""Record batches as they lie in the log: headers always, records only where somebody asks.

The layout is the protocol's, https://kafka.apache.org/documentation/#recordbatch. Bytes in, values
out; nothing here fetches, and nothing decides what a hole means. An entry of an older version is
given as a batch of no producer and no epoch, from its first offset to its last.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from tallystick.domain.batches.polling import UNKNOWN_BYTES_PER_RECORD
from tallystick.errors import LogUnreadable
from tallystick.sources.batch_codecs import MOST_BYTES, NONE, TooLarge, opened
from tallystick.sources.message_sets import SHORTEST, StoredRecord, messages_in

HEADER: Final = Struct(">qiibIhiqqqhii")
_PLACE: Final = Struct(">qi")
_LENGTH: Final = Struct(">i")
_CONTROL_KEY: Final = Struct(">hh")
# Base offset and length come before the bytes that the length counts.
_UNCOUNTED_BYTES: Final = 12
# Of the counted bytes, those up to and with the magic byte: the same place in every version.
_MAGIC_AT: Final = 16
MAGIC: Final = 2
# Bytes that a batch of each version has at least, of those that its length counts.
_SHORTEST: Final = {**SHORTEST, MAGIC: HEADER.size - _UNCOUNTED_BYTES}
_UNKNOWN: Final = -1

# What is unpacked at once, beside the record that is read.
_PIECE_BYTES: Final = 256 << 10
_VARINT_BYTES: Final = 5
_MOST_RECORD_BYTES: Final = 2**31 - 1
_SAMPLED_RECORDS: Final = 100

_CODEC_BITS: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_ABORT: Final = 0


class BatchUnreadable(ValueError):
    """The bytes are no record batch of version 0, 1 or 2, or are damaged."""


@contextmanager
def read_at(place: str) -> Iterator[None]:
    """What is unreadable in the block is told with its place; raises LogUnreadable."""
    try:
        yield
    except BatchUnreadable as failure:
        raise LogUnreadable(place, str(failure)) from failure


class RecordBatch(NamedTuple):
    """One batch: the fields of its header in their order, and its payload as it was stored."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    payload: memoryview

    @property
    def until_offset(self) -> int:
        """One past the last offset the batch was written with; compaction doesn't change it."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def is_control(self) -> bool:
        """True for a transaction's commit or abort marker."""
        return bool(self.attributes & _CONTROL)

    @property
    def is_transactional(self) -> bool:
        """True when the batch belongs to a transaction."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_complete(self) -> bool:
        """True when every offset of the batch still has its record.

        A broker takes no batch with holes from a producer, so only compaction makes one incomplete.
        """
        return self.record_count == self.last_offset_delta + 1


def batches_in(records: bytes | memoryview) -> Iterator[RecordBatch]:
    """The whole batches, in order; a part of one at the end (cut off by the broker) is left out.

    Raises BatchUnreadable where a batch has another version than 0, 1 or 2, or can't be read.
    """
    view = memoryview(records)
    position, until = 0, len(view)
    while position + _MAGIC_AT < until:
        base_offset, length = _PLACE.unpack_from(view, position)
        following = position + _UNCOUNTED_BYTES + length
        magic = view[position + _MAGIC_AT]
        if magic not in _SHORTEST:
            raise BatchUnreadable(f"record batch at {base_offset} has the unknown version {magic}")
        if length < _SHORTEST[magic]:
            raise BatchUnreadable(
                f"record batch at {base_offset}: {length} bytes are fewer than its header has"
            )
        if following > until:
            return
        if magic == MAGIC:
            fields = HEADER.unpack_from(view, position)
            yield RecordBatch._make((*fields, view[position + HEADER.size : following]))
        else:
            yield _older(view[position:following])
        position = following


def batch_reaching(records: bytes | memoryview, offset: int) -> RecordBatch | None:
    """The first whole batch that holds the offset or lies behind it; raises BatchUnreadable."""
    for each in batches_in(records):
        if offset < each.until_offset:
            return each
    return None


def bytes_of_first_batch(records: bytes | memoryview) -> int | None:
    """Size of the first batch, whole or cut off; None where not even its length is there."""
    if len(records) < _UNCOUNTED_BYTES:
        return None
    return _UNCOUNTED_BYTES + int(_LENGTH.unpack_from(records, 8)[0])


def is_abort_marker(batch: RecordBatch) -> bool:
    """True for the marker that ends an aborted transaction; one whose record is gone is none."""
    if not batch.is_control or batch.record_count == 0:
        return False
    _, record = next(_stored(batch))
    key = _record(batch, record).key
    return key is not None and _CONTROL_KEY.unpack_from(key)[1] == _ABORT


def offsets_in(batch: RecordBatch) -> Iterator[int]:
    """The offsets that still have a record, in order; raises BatchUnreadable."""
    if batch.magic < MAGIC:
        yield from (each.offset for each in messages_in(batch.payload))
        return
    yield from (offset for offset, _ in _stored(batch))


def record_in(batch: RecordBatch, offset: int) -> StoredRecord | None:
    """The record at this offset; None where the batch has none, or is a control batch.

    Raises BatchUnreadable.
    """
    if batch.is_control or not batch.base_offset <= offset < batch.until_offset:
        return None
    if batch.magic < MAGIC:
        return next((each for each in records_in(batch) if each.offset == offset), None)
    # Whole is read only the one that is asked for: a batch may hold thousands.
    for each, record in _stored(batch):
        if each == offset:
            return _readable(batch, record)
    return None


def records_in(batch: RecordBatch) -> Iterator[StoredRecord]:
    """The records of the batch, a marker's own too, in order; raises BatchUnreadable."""
    if batch.magic < MAGIC:
        return iter(messages_in(batch.payload))
    return (_readable(batch, record) for _, record in _stored(batch))


def unpacked_bytes(batch: RecordBatch, most: int) -> int:
    """Counts the bytes of the records unpacked, a little beyond `most` at most.

    Of a damaged batch those before the damage.
    """
    if batch.magic < MAGIC:
        return sum(len(each.key or b"") + len(each.value or b"") for each in records_in(batch))
    codec, count = batch.attributes & _CODEC_BITS, 0
    if codec == NONE:
        return len(batch.payload)
    try:
        plain = opened(codec, batch.payload)
        while count <= most and (piece := plain.read(_PIECE_BYTES)):
            count += len(piece)
    except TooLarge:
        return most + 1
    except (ValueError, OSError):
        pass
    return count


def bytes_per_record(batch: RecordBatch) -> float:
    """Averages what the records with which the batch begins take unpacked.

    Of a batch that can't be unpacked here it is a guess: they are taken to be large.
    """
    if batch.magic < MAGIC:
        return unpacked_bytes(batch, 0) / batch.record_count
    count = total = 0
    try:
        for _, record in islice(_stored(batch), _SAMPLED_RECORDS):
            count, total = count + 1, total + len(record)
            if total > _PIECE_BYTES:
                break
    except BatchUnreadable as failure:
        is_too_large = isinstance(failure.__cause__, TooLarge)
        return MOST_BYTES / max(1, batch.record_count) if is_too_large else UNKNOWN_BYTES_PER_RECORD
    return total / max(1, count)


def _older(entry: memoryview) -> RecordBatch:
    """An entry of version 0 or 1; a compressed one has to be opened, or nobody knows its start."""
    last_offset, length = _PLACE.unpack_from(entry)
    try:
        messages = messages_in(entry)
    except ValueError as failure:
        raise BatchUnreadable(f"record batch up to {last_offset}: {failure}") from failure
    times = [each.timestamp_ms for each in messages]
    first, last = messages[0].offset, messages[-1].offset
    return RecordBatch(
        base_offset=first,
        length=length,
        leader_epoch=_UNKNOWN,
        magic=entry[_MAGIC_AT],
        crc=0,
        attributes=0,
        last_offset_delta=last - first,
        base_timestamp=times[0],
        max_timestamp=max(times),
        producer_id=_UNKNOWN,
        producer_epoch=_UNKNOWN,
        base_sequence=_UNKNOWN,
        record_count=len(messages),
        payload=entry,
    )


def _stored(batch: RecordBatch) -> Iterator[tuple[int, memoryview]]:
    """The offset of each record, and its bytes from its attributes on; unpacked as it is read."""
    try:
        plain = opened(batch.attributes & _CODEC_BITS, batch.payload)
        view, position = memoryview(b""), 0
        for _ in range(batch.record_count):
            if len(view) - position < _VARINT_BYTES:
                view, position = _more(view[position:], plain, _PIECE_BYTES), 0
            length, position = _varint(view, position)
            if not 0 < length <= _MOST_RECORD_BYTES:
                raise ValueError(f"a record of {length} bytes")
            if position + length > len(view):
                view, position = _more(view[position:], plain, max(length, _PIECE_BYTES)), 0
            record = view[position : position + length]
            if len(record) < length:
                raise ValueError(f"a record of {length} bytes has {len(record)}")
            position += length
            _, after_timestamp = _varint(record, 1)
            delta, _ = _varint(record, after_timestamp)
            yield batch.base_offset + delta, record
    except (ValueError, IndexError, OSError) as failure:
        raise BatchUnreadable(f"record batch at {batch.base_offset}: {failure}") from failure


def _more(left: memoryview, plain: BinaryIO, count: int) -> memoryview:
    return memoryview(b"".join((left, plain.read(count))))


def _readable(batch: RecordBatch, view: memoryview) -> StoredRecord:
    try:
        return _record(batch, view)
    except (ValueError, IndexError) as failure:
        raise BatchUnreadable(f"record batch at {batch.base_offset}: {failure}") from failure


def _record(batch: RecordBatch, view: memoryview) -> StoredRecord:
    timestamp_delta, position = _varint(view, 1)
    offset_delta, position = _varint(view, position)
    key, position = _bytes(view, position)
    value, position = _bytes(view, position)
    count, position = _varint(view, position)
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _bytes(view, position)
        content, position = _bytes(view, position)
        # Java decodes header names this way too: a malformed name must not differ between the two.
        headers.append(((name or b"").decode("utf-8", "replace"), content))
    if batch.attributes & _LOG_APPEND_TIME:
        # Under LogAppendTime every record of the batch bears the time of the append.
        timestamp_ms = batch.max_timestamp
    else:
        timestamp_ms = batch.base_timestamp + timestamp_delta
    return StoredRecord(batch.base_offset + offset_delta, timestamp_ms, key, value, tuple(headers))


def _bytes(view: memoryview, position: int) -> tuple[bytes | None, int]:
    length, position = _varint(view, position)
    if length < 0:
        return None, position
    return bytes(view[position : position + length]), position + length


def _varint(view: memoryview, position: int) -> tuple[int, int]:
    """A zigzag number of variable length, and the position after it."""
    raw = view[position]
    position += 1
    if raw >= 0x80:
        raw &= 0x7F
        shift = 7
        while True:
            byte = view[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
    return (raw >> 1) ^ -(raw & 1), position
