"""Batches whose bytes are damaged: the second reader says what it sees, and its process lives on.

Each is read by a process of its own, for a library in C can end the one that it is in.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

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

reader = LibrdkafkaReader({"bootstrap.servers": sys.argv[1]}, patience_seconds=float(sys.argv[3]))
slices = [OffsetRange(TopicPartition(sys.argv[2], each), 0, 6) for each in range(2)]
try:
    found = reader.read(slices, Isolation.READ_COMMITTED)
    told = [[[r.content_hash.hex() for r in each.records], each.reason] for each in found]
except IngestionError as error:
    told = [[[], str(error)]] * 2
reader.close()
print(json.dumps(told))
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


@cache
def undamaged(servers: str, topic: str) -> list[tuple[list[str], str | None]]:
    return read_by_another_process(servers, topic)


def read_by_another_process(
    servers: str, topic: str, patience_seconds: float = BUSY_SECONDS
) -> list[tuple[list[str], str | None]]:
    """Of each partition the records' hashes, and why a part has no answer."""
    ended = subprocess.run(
        [sys.executable, "-c", READ, servers, topic, str(patience_seconds)],
        capture_output=True,
        text=True,
        timeout=2 * BUSY_SECONDS,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert ended.returncode == 0, f"it ended with {ended.returncode}: {ended.stderr[-2000:]}"
    told: list[Any] = json.loads(ended.stdout)
    return [(hashes, reason) for hashes, reason in told]


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


def test_a_changed_record_is_told_by_its_hash_and_hides_no_other_one(broker: MockKafka) -> None:
    whole = undamaged(broker.servers, "none")
    with damaging_proxy(broker.servers, in_first_batch(_HEADER_BYTES + 30, flipped)) as servers:
        damaged = read_by_another_process(servers, "none")

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
def test_a_checksum_that_is_wrong_by_itself_changes_no_record(
    broker: MockKafka, codec: str
) -> None:
    with damaging_proxy(broker.servers, in_first_batch(_CRC, flipped)) as servers:
        assert read_by_another_process(servers, codec) == undamaged(broker.servers, codec)


@pytest.mark.parametrize("codec", [each for each in CODECS if each != "none"])
def test_what_can_not_be_unpacked_is_said(broker: MockKafka, codec: str) -> None:
    whole = undamaged(broker.servers, codec)
    with damaging_proxy(broker.servers, in_first_batch(_HEADER_BYTES + 1, flipped)) as servers:
        damaged = read_by_another_process(servers, codec, 1)

    for (hashes, reason), (right, _) in zip(damaged, whole, strict=True):
        assert hashes == right or reason is not None
    assert damaged != whole


@pytest.mark.parametrize("length", [0, 5, 60, 255])
def test_a_length_that_is_wrong_is_no_answer(broker: MockKafka, length: int) -> None:
    """Only the lowest byte is changed, so the batch ends within itself, or behind its end."""
    whole = undamaged(broker.servers, "none")
    with damaging_proxy(broker.servers, in_first_batch(_LENGTH + 3, lambda _: length)) as servers:
        damaged = read_by_another_process(servers, "none", 1)

    for (hashes, reason), (right, _) in zip(damaged, whole, strict=True):
        assert hashes == right or reason is not None
    assert any(reason for _, reason in damaged)
