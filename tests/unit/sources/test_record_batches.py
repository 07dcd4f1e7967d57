"""Batches of records, whole and damaged: what is said of them, and their reader lives on."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from kafka.record.default_records import DefaultRecordBatchBuilder

from tallystick.sources import batch_codecs
from tallystick.sources.batch_codecs import decompressed
from tallystick.sources.message_sets import StoredRecord
from tallystick.sources.record_batches import (
    BatchUnreadable,
    batches_in,
    bytes_of_first_batch,
    bytes_per_record,
    is_abort_marker,
    offsets_in,
    record_in,
    unpacked_bytes,
)
from tests.support.busy import BUSY_SECONDS
from tests.support.damaging_proxy import damaging_proxy
from tests.support.kafka_batches import ABORT, COMMIT, a_batch, a_marker
from tests.support.mock_kafka import MockKafka, mock_kafka

CODECS = ("none", "gzip", "snappy", "xerial", "lz4", "zstd")


def by_kafka_python() -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=77,
        producer_epoch=3,
        base_sequence=9,
        batch_size=1 << 20,
    )
    builder.append(0, 1000, b"k", b"v" * 300, [("h", b"1"), ("h", None)])
    builder.append(1, 900, None, None, [])
    builder.append(2, 1 << 42, b"", b"", [("ü", b"")])
    return bytes(builder.build())


def test_a_batch_of_another_library_is_read_field_by_field() -> None:
    (batch,) = batches_in(by_kafka_python())
    assert (batch.base_offset, batch.until_offset, batch.record_count) == (0, 3, 3)
    assert (batch.producer_id, batch.is_transactional, batch.is_control) == (77, True, False)
    assert batch.is_complete
    assert [record_in(batch, offset) for offset in range(4)] == [
        StoredRecord(0, 1000, b"k", b"v" * 300, (("h", b"1"), ("h", None))),
        StoredRecord(1, 900, None, None, ()),
        StoredRecord(2, 1 << 42, b"", b"", (("ü", b""),)),
        None,
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_gives_the_same_records(codec: str) -> None:
    offsets = [5, 6, 9, 300]
    raw = a_batch(5, 400, offsets=offsets, codec=codec, key=b"key", headers=[("a", b"b")])
    (batch,) = batches_in(raw)
    assert list(offsets_in(batch)) == offsets
    assert record_in(batch, 9) == StoredRecord(9, 1009, b"key", b"v9", (("a", b"b"),))
    assert record_in(batch, 7) is None


def test_a_large_payload_is_decompressed_whole() -> None:
    for codec in CODECS:
        values = [bytes([n % 251]) * 10_000 for n in range(300)]
        (batch,) = batches_in(a_batch(0, 300, codec=codec, values=values))
        found = record_in(batch, 299)
        assert found is not None
        assert found.value == values[299]


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_much_takes_little_memory(codec: str) -> None:
    megabyte = 1_000_000
    (batch,) = batches_in(a_batch(0, 40, codec=codec, values=[b"a" * megabyte] * 40))
    tracemalloc.start()
    try:
        assert record_in(batch, 39) is not None
        assert bytes_per_record(batch) == pytest.approx(megabyte, rel=0.01)
        assert 5 * megabyte < unpacked_bytes(batch, 5 * megabyte) < 6 * megabyte
        assert unpacked_bytes(batch, 50 * megabyte) == pytest.approx(40 * megabyte, rel=0.01)
        assert tracemalloc.get_traced_memory()[1] < 8 * megabyte
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_is_weighed_without_reading_its_records(codec: str) -> None:
    (batch,) = batches_in(a_batch(0, 3, codec=codec, values=[b"a" * 300, b"b" * 600, None]))
    assert unpacked_bytes(batch, 10_000) == pytest.approx(920, abs=20)
    assert bytes_per_record(batch) == pytest.approx(307, abs=7)
    (emptied,) = batches_in(a_batch(0, 3, codec=codec, offsets=[]))
    assert bytes_per_record(emptied) == 0


def test_a_damaged_batch_weighs_what_is_before_the_damage() -> None:
    raw = a_batch(0, 40, codec="gzip", values=[b"a" * 100_000] * 40)
    (batch,) = batches_in(raw)
    cut = batch._replace(payload=batch.payload[: len(batch.payload) // 2])
    assert 0 < unpacked_bytes(cut, 10_000_000) < 4_000_000
    with pytest.raises(BatchUnreadable, match="record batch at 0"):
        record_in(cut, 39)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "xerial", "lz4"])
def test_what_is_unpacked_as_a_whole_is_bounded(
    monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    (batch,) = batches_in(a_batch(0, 1, codec=codec, values=[b"a" * 5_000]))
    assert len(decompressed(batch.attributes, batch.payload)) > 5_000
    monkeypatch.setattr(batch_codecs, "MOST_BYTES", 5_000)
    with pytest.raises(ValueError, match="unpacks to more than"):
        decompressed(batch.attributes, batch.payload)


@pytest.mark.parametrize("codec", ["snappy", "xerial"])
def test_a_batch_that_is_too_large_to_unpack_as_a_whole_is_no_light_one(
    monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    (batch,) = batches_in(a_batch(0, 2, codec=codec, values=[b"a" * 5_000] * 2))
    monkeypatch.setattr(batch_codecs, "MOST_BYTES", 5_000)
    assert unpacked_bytes(batch, 7_000) > 7_000
    assert bytes_per_record(batch) > 1_000_000, "it is taken to be large"


def test_under_log_append_time_the_batch_has_the_time() -> None:
    (batch,) = batches_in(a_batch(0, 2, timestamps=[10, 20], append_time=99))
    assert [record_in(batch, offset).timestamp_ms for offset in (0, 1)] == [99, 99]  # type: ignore[union-attr]


def test_times_may_go_back_inside_a_batch() -> None:
    (batch,) = batches_in(a_batch(0, 3, timestamps=[1000, -1, 0]))
    times = [record_in(batch, offset).timestamp_ms for offset in range(3)]  # type: ignore[union-attr]
    assert times == [1000, -1, 0]


def test_a_header_name_that_is_no_utf8_is_read_as_java_reads_it() -> None:
    raw = a_batch(0, 1, headers=[("XY", b"1")]).replace(b"XY", b"X\xff")
    (batch,) = batches_in(raw)
    found = record_in(batch, 0)
    assert found is not None
    assert found.headers == (("X\ufffd", b"1"),)


def test_batches_follow_one_another_and_a_part_at_the_end_is_left_out() -> None:
    raw = a_batch(0, 3) + a_batch(3, 5) + a_batch(5, 9)
    for cut in (1, 60, 61, 62, len(a_batch(5, 9)) - 1):
        whole = raw[: len(raw) - len(a_batch(5, 9)) + cut]
        assert [each.base_offset for each in batches_in(whole)] == [0, 3]
    assert [each.base_offset for each in batches_in(raw)] == [0, 3, 5]
    assert list(batches_in(b"")) == []


def test_the_size_of_the_first_batch_is_known_from_its_first_bytes() -> None:
    raw = a_batch(0, 3)
    assert bytes_of_first_batch(raw) == len(raw)
    assert bytes_of_first_batch(raw[:12] + b"more") == len(raw)
    assert bytes_of_first_batch(raw[:11]) is None


def test_markers() -> None:
    raw = a_marker(7, 5, ABORT) + a_marker(8, 5, COMMIT) + a_marker(9, 5, ABORT, is_cleaned=True)
    batches = list(batches_in(raw))
    assert [is_abort_marker(each) for each in batches] == [True, False, False]
    assert all(each.is_control and each.is_transactional for each in batches)
    assert [record_in(each, 7) for each in batches] == [None, None, None]
    (data,) = batches_in(a_batch(0, 1))
    assert not is_abort_marker(data)


def test_a_batch_that_compaction_emptied_has_no_offsets() -> None:
    (batch,) = batches_in(a_batch(4, 9, offsets=[]))
    assert not batch.is_complete
    assert (batch.until_offset, list(offsets_in(batch))) == (9, [])


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(BatchUnreadable, match="batch at 7 has the unknown version 3"):
        list(batches_in(a_batch(7, 8, magic=3)))


def test_a_length_shorter_than_the_header_is_refused() -> None:
    raw = bytearray(a_batch(0, 1))
    raw[8:12] = (20).to_bytes(4, "big")
    with pytest.raises(BatchUnreadable, match="20 bytes are fewer than its header has"):
        list(batches_in(bytes(raw)))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_damaged_payload_is_refused(codec: str) -> None:
    raw = bytearray(a_batch(3, 200, codec=codec))
    raw[61:] = bytes(255 - byte for byte in raw[61:])
    (batch,) = batches_in(bytes(raw))
    with pytest.raises(BatchUnreadable, match="record batch at 3"):
        list(offsets_in(batch))


def test_an_unknown_codec_is_refused() -> None:
    raw = bytearray(a_batch(3, 5))
    raw[22] |= 0x07
    (batch,) = batches_in(bytes(raw))
    with pytest.raises(BatchUnreadable, match="compression codec 7"):
        list(offsets_in(batch))


def test_a_snappy_block_that_claims_gigabytes_takes_none() -> None:
    raw = bytearray(a_batch(3, 5, codec="snappy"))
    raw[61:66] = b"\xff\xff\xff\xff\x0f"
    (batch,) = batches_in(bytes(raw))
    with pytest.raises(BatchUnreadable, match="claims 4294967295 plain ones"):
        list(offsets_in(batch))


def test_records_that_end_before_their_count_are_refused() -> None:
    raw = bytearray(a_batch(3, 5))
    raw[57:61] = (3).to_bytes(4, "big")
    (batch,) = batches_in(bytes(raw))
    with pytest.raises(BatchUnreadable, match="record batch at 3"):
        list(offsets_in(batch))


def test_a_record_too_short_for_its_offset_is_refused() -> None:
    raw = bytearray(a_batch(3, 5)[:61] + b"\x02\x00")  # one byte: its attributes
    raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
    raw[57:61] = (1).to_bytes(4, "big")
    (batch,) = batches_in(bytes(raw))
    with pytest.raises(BatchUnreadable, match="record batch at 3"):
        list(offsets_in(batch))
    with pytest.raises(BatchUnreadable, match="record batch at 3"):
        record_in(batch, 3)


AT = 1_793_000_000_000
DAMAGED_CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
READ = """
import json, sys
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.batches.states import Isolation
from tallystick.errors import IngestionError
from tallystick.sources.second_reader import LibrdkafkaReader

for line in sys.stdin:
    servers, topic, patience_seconds = json.loads(line)
    reader = LibrdkafkaReader({"bootstrap.servers": servers}, patience_seconds=patience_seconds)
    slices = [OffsetRange(TopicPartition(topic, each), 0, 6) for each in range(2)]
    try:
        found = reader.read(slices, Isolation.READ_COMMITTED)
        told = [[[r.content_hash.hex() for r in each.records], each.reason] for each in found]
    except IngestionError as error:
        told = [[[], str(error)]] * 2
    reader.close()
    print(json.dumps(told), flush=True)
"""
_HEADER_BYTES = 61
_CRC, _LENGTH = 17, 8


@pytest.fixture(scope="module")
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as broker:
        for codec in DAMAGED_CODECS:
            producer = Producer(
                {
                    "bootstrap.servers": broker.servers,
                    "compression.type": codec,
                    "linger.ms": 10_000,  # all six in one batch: `flush` waits for none of it
                    "log_level": 0,
                }
            )
            producer.list_topics(codec, 10)  # else a busy machine may split the batch all the same
            for partition in range(2):
                for number in range(6):
                    value = b"record %d of %d" % (number, partition) * 20
                    producer.produce(codec, value, partition=partition, timestamp=AT)
            assert producer.flush(10) == 0
        yield broker


@dataclass(frozen=True)
class Reader:
    """The other process."""

    broker: MockKafka
    process: subprocess.Popen[str]

    def read(
        self,
        topic: str,
        damage: Callable[[bytes], bytes] | None = None,
        patience_seconds: float = BUSY_SECONDS,
    ) -> list[tuple[list[str], str | None]]:
        """Of each partition the records' hashes, and why a part has no answer."""
        asks, answers, whole = self.process.stdin, self.process.stdout, self.broker.servers
        assert asks is not None
        assert answers is not None
        with damaging_proxy(whole, damage) if damage else nullcontext(whole) as servers:
            print(json.dumps([servers, topic, patience_seconds]), file=asks, flush=True)
            assert select.select([answers], [], [], 2 * BUSY_SECONDS)[0], "it hangs"
            told = answers.readline()
        assert told, f"it ended with {self.process.wait()}"
        return [(hashes, reason) for hashes, reason in json.loads(told)]


@pytest.fixture(scope="module")
def reader(broker: MockKafka) -> Iterator[Reader]:
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", READ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environ,
    ) as process:
        yield Reader(broker, process)
        process.kill()


def in_first_batch(place: int, becomes: Callable[[int], int]) -> Callable[[bytes], bytes]:
    """Damages one byte of the first batch in each answer, counted from its header's beginning."""

    def damage(answer: bytes) -> bytes:
        # A header of the present format, without a producer's id, that begins with offset 0.
        header = re.compile(rb"\0{8}.{8}\x02.{4}\0.\0{3}\x05.{16}\xff{8}", re.DOTALL)
        match = header.search(answer)
        if match is None or len(answer) <= match.start() + place:
            return answer
        at = match.start() + place
        return answer[:at] + bytes([becomes(answer[at])]) + answer[at + 1 :]

    return damage


def flipped(byte: int) -> int:
    return byte ^ 0x55


def test_a_changed_record_is_told_by_its_hash_and_hides_no_other_one(reader: Reader) -> None:
    whole = reader.read("none")
    damaged = reader.read("none", in_first_batch(_HEADER_BYTES + 30, flipped))

    changed = [
        (partition, offset)
        for partition, (hashes, reason) in enumerate(damaged)
        for offset, each in enumerate(hashes)
        if (each, reason) != (whole[partition][0][offset], None)
    ]
    assert [len(hashes) for hashes, _ in damaged] == [6, 6]
    assert {offset for _, offset in changed} == {0}
    assert 1 <= len(changed) <= 2


@pytest.mark.parametrize("codec", DAMAGED_CODECS)
def test_a_checksum_that_is_wrong_by_itself_changes_no_record(reader: Reader, codec: str) -> None:
    assert reader.read(codec, in_first_batch(_CRC, flipped)) == reader.read(codec)


def lacks_an_answer(reader: Reader, topic: str, damage: Callable[[bytes], bytes]) -> bool:
    """True if a part of the damaged topic has none; all others are as they were written."""
    damaged, whole = reader.read(topic, damage, 1), reader.read(topic)
    for (hashes, reason), (right, _) in zip(damaged, whole, strict=True):
        assert hashes == right or reason is not None
    return any(reason for _, reason in damaged)


@pytest.mark.parametrize("codec", [each for each in DAMAGED_CODECS if each != "none"])
def test_what_can_not_be_unpacked_is_said(reader: Reader, codec: str) -> None:
    assert lacks_an_answer(reader, codec, in_first_batch(_HEADER_BYTES + 1, flipped))


@pytest.mark.parametrize("length", [0, 5, 60, 255])
def test_a_length_that_is_wrong_is_no_answer(reader: Reader, length: int) -> None:
    """Only the lowest byte is changed, so the batch ends within itself, or behind its end."""
    assert lacks_an_answer(reader, "none", in_first_batch(_LENGTH + 3, lambda _: length))
