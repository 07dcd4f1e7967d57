"""Batches whose bytes are damaged: the second reader says what it sees, and its process lives on.

They are read by another process, for a library in C can end the one that it is in.
"""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer

from tests.support.busy import BUSY_SECONDS
from tests.support.damaging_proxy import damaging_proxy
from tests.support.mock_kafka import MockKafka, mock_kafka

AT = 1_793_000_000_000
CODECS = ("none", "gzip", "lz4", "zstd", "snappy")
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
        for codec in CODECS:
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


@pytest.mark.parametrize("codec", CODECS)
def test_a_checksum_that_is_wrong_by_itself_changes_no_record(reader: Reader, codec: str) -> None:
    assert reader.read(codec, in_first_batch(_CRC, flipped)) == reader.read(codec)


def lacks_an_answer(reader: Reader, topic: str, damage: Callable[[bytes], bytes]) -> bool:
    """True if a part of the damaged topic has none; all others are as they were written."""
    damaged, whole = reader.read(topic, damage, 1), reader.read(topic)
    for (hashes, reason), (right, _) in zip(damaged, whole, strict=True):
        assert hashes == right or reason is not None
    return any(reason for _, reason in damaged)


@pytest.mark.parametrize("codec", [each for each in CODECS if each != "none"])
def test_what_can_not_be_unpacked_is_said(reader: Reader, codec: str) -> None:
    assert lacks_an_answer(reader, codec, in_first_batch(_HEADER_BYTES + 1, flipped))


@pytest.mark.parametrize("length", [0, 5, 60, 255])
def test_a_length_that_is_wrong_is_no_answer(reader: Reader, length: int) -> None:
    """Only the lowest byte is changed, so the batch ends within itself, or behind its end."""
    assert lacks_an_answer(reader, "none", in_first_batch(_LENGTH + 3, lambda _: length))
