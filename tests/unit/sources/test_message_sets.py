"""Messages of versions 0 and 1 are read as Java's consumer reads them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.sources.hole_walk import FetchAnswer, HoleWalk
from tallystick.sources.message_sets import StoredRecord
from tallystick.sources.record_batches import BatchUnreadable, batches_in, offsets_in, record_in
from tests.support.kafka_batches import a_batch
from tests.support.kafka_old_messages import OldMessage, a_message, a_wrapper

VERSIONS = (0, 1)
CODECS = ("gzip", "snappy", "xerial", "lz4")
MESSAGES = (
    OldMessage(40, b"one", b"k", 1_500_000_000_000),
    OldMessage(41, None, b"tombstone", 1_400_000_000_000),
    OldMessage(42, b"", None, -1),
)


def stored(each: OldMessage, magic: int) -> StoredRecord:
    return StoredRecord(
        each.offset, each.timestamp_ms if magic == 1 else -1, each.key, each.value, ()
    )


@pytest.mark.parametrize("magic", VERSIONS)
def test_plain_messages_are_batches_of_their_own(magic: int) -> None:
    raw = b"".join(a_message(each, magic) for each in MESSAGES)
    batches = list(batches_in(raw))
    assert [(each.base_offset, each.until_offset) for each in batches] == [
        (40, 41),
        (41, 42),
        (42, 43),
    ]
    for batch, message in zip(batches, MESSAGES, strict=True):
        assert record_in(batch, message.offset) == stored(message, magic)
        assert (batch.producer_id, batch.leader_epoch) == (-1, -1)
        assert not batch.is_control
        assert not batch.is_transactional
        assert batch.is_complete
        assert batch.max_timestamp == (message.timestamp_ms if magic else -1)


@pytest.mark.parametrize("magic", VERSIONS)
@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_is_one_batch_from_its_first_message_to_its_last(magic: int, codec: str) -> None:
    raw = a_wrapper(MESSAGES, magic, codec)
    (batch,) = batches_in(raw)
    assert (batch.base_offset, batch.until_offset, batch.record_count) == (40, 43, 3)
    assert batch.length + 12 == len(raw)
    assert list(offsets_in(batch)) == [40, 41, 42]
    assert [record_in(batch, each.offset) for each in MESSAGES] == [
        stored(each, magic) for each in MESSAGES
    ]
    assert record_in(batch, 43) is None


def test_under_log_append_time_the_wrapper_has_the_time_of_all() -> None:
    (batch,) = batches_in(a_wrapper(MESSAGES, 1, "gzip", append_time=77))
    assert [record_in(batch, each).timestamp_ms for each in (40, 41, 42)] == [77] * 3  # type: ignore[union-attr]


@pytest.mark.parametrize("magic", VERSIONS)
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_another_library_reads_and_writes_the_same(magic: int, is_wrapped: bool) -> None:
    builder: Any = LegacyRecordBatchBuilder(
        magic=magic, compression_type=1 if is_wrapped else 0, batch_size=1 << 20
    )
    for offset, value in enumerate((b"a", None, b"c" * 2_000)):
        builder.append(offset, 1_000 + offset, b"k%d" % offset, value)
    raw = bytearray(builder.build())
    if is_wrapped:
        raw[:8] = (2).to_bytes(8, "big")  # the broker gives a wrapper its last message's offset
    theirs = [
        StoredRecord(
            each.offset, -1 if each.timestamp is None else each.timestamp, each.key, each.value, ()
        )
        for entry in entries_of(bytes(raw))
        for each in LegacyRecordBatch(entry, magic)
    ]
    ours = [
        record_in(batch, offset) for batch in batches_in(bytes(raw)) for offset in offsets_in(batch)
    ]
    assert [each and each.offset for each in ours] == [0, 1, 2]
    assert ours == theirs


def entries_of(raw: bytes) -> list[bytes]:
    starts = [0]
    while starts[-1] < len(raw):
        starts.append(
            starts[-1] + 12 + int.from_bytes(raw[starts[-1] + 8 : starts[-1] + 12], "big")
        )
    return [raw[start:until] for start, until in pairwise(starts)]


def test_versions_may_follow_one_another_and_a_part_at_the_end_is_left_out() -> None:
    last = a_message(OldMessage(9, b"v"), 0)
    whole = (
        a_message(OldMessage(3, b"v"), 0)
        + a_wrapper([OldMessage(4, b"v"), OldMessage(5, b"v")], 1, "gzip")
        + a_batch(6, 9)
        + last
    )
    assert [each.base_offset for each in batches_in(whole)] == [3, 4, 6, 9]
    for cut in range(1, len(last)):
        assert [each.base_offset for each in batches_in(whole[:-cut])] == [3, 4, 6]


@pytest.mark.parametrize("magic", VERSIONS)
def test_the_smallest_message_is_seen_although_it_is_shorter_than_a_header_of_today(
    magic: int,
) -> None:
    (batch,) = batches_in(a_message(OldMessage(5, None), magic))
    assert record_in(batch, 5) == StoredRecord(5, -1, None, None, ())


@pytest.mark.parametrize("magic", VERSIONS)
def test_holes_between_and_inside_old_messages_are_told_apart(magic: int) -> None:
    kept = [OldMessage(10, b"v"), OldMessage(13, b"v")]
    raw = a_message(OldMessage(7, b"v"), magic) + a_wrapper(kept, magic, "gzip")
    walk = HoleWalk(OffsetRuns.of([(7, 13)]), Isolation.READ_COMMITTED)
    walk.take(FetchAnswer(raw, (), 14))
    # The records at 7 and 10 are there: what misses them has lost them.
    assert walk.explained() == {HoleClass.COMPACTED: OffsetRuns.of([(11, 13)])}
    assert walk.bare() == OffsetRuns.of([(8, 10)])


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (a_wrapper(MESSAGES, 1, "zstd"), "version 1 compressed by codec 4"),
        (a_message(OldMessage(3, b"no gzip"), 1, codec="gzip"), "payload of codec 1 is damaged"),
        (a_message(OldMessage(3, None), 0, codec="gzip"), "version 0 compressed by codec 1"),
        (a_wrapper([OldMessage(3, b""), OldMessage(3, b"")], 0, "gzip"), "offsets 3 to 3"),
        (a_message(OldMessage(3, b"x" * 9), 1)[:-3], None),
    ],
    ids=["zstd", "damaged", "empty", "twice", "cut off"],
)
def test_what_a_consumer_would_refuse_is_refused_by_its_place(
    raw: bytes, reason: str | None
) -> None:
    if reason is None:
        assert list(batches_in(raw)) == []
        return
    with pytest.raises(BatchUnreadable, match=f"record batch up to [0-9]+: .*{reason}"):
        list(batches_in(raw))


@pytest.mark.parametrize("magic", VERSIONS)
def test_every_changed_byte_of_a_message_is_noticed(magic: int) -> None:
    raw = a_message(OldMessage(3, b"value", b"key", 9), magic)
    for place in range(12, len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 0x04
        with pytest.raises(BatchUnreadable, match="3"):
            list(batches_in(bytes(changed)))


def test_a_field_that_reaches_beyond_its_message_is_refused() -> None:
    raw = bytearray(a_message(OldMessage(3, b"value"), 1))
    raw[-9:-5] = (6).to_bytes(4, "big")
    raw[12:16] = crc32(raw[16:]).to_bytes(4, "big")
    with pytest.raises(BatchUnreadable, match="a field of 6 bytes reaches beyond its message"):
        list(batches_in(bytes(raw)))
