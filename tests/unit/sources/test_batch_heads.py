"""One batch header per partition: held or next, fetched together, alone where it does not fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.domain.logs.snapshot import BatchHead
from tallystick.errors import LogUnreadable
from tallystick.sources import leader_connections
from tallystick.sources.batch_heads import BatchSearch
from tallystick.sources.client_properties import client_properties
from tallystick.sources.leader_connections import LeaderConnections
from tallystick.sources.leader_reads import LeaderReads
from tests.support.kafka_batches import a_batch
from tests.support.kafka_scripted import ScriptedClient, fetched, metadata, part

OUT_OF_RANGE = 1


Heads = Callable[[ScriptedClient, dict[int, int]], dict[int, BatchHead]]
Search = Callable[[ScriptedClient, dict[int, int]], BatchSearch]


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Search:
    def search(client: ScriptedClient, offsets: dict[int, int]) -> BatchSearch:
        monkeypatch.setattr(leader_connections, "open_client", lambda config: client)
        given = client_properties({"bootstrap.servers": "one:9092"})
        connections = LeaderConnections(given, request_seconds=0.3)
        return BatchSearch(LeaderReads(connections, patience_seconds=60), "orders", offsets)

    return search


@pytest.fixture
def heads_of(search: Search) -> Heads:
    return lambda client, offsets: search(client, offsets).heads()


LED = metadata({0: (1, 5)})


def test_the_batch_that_holds_the_offset_or_else_the_next(heads_of: Heads) -> None:
    held = a_batch(4, 8, producer=7, timestamps=[900, 2_000, 1_000, 1_500])
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=held + a_batch(8, 9)))])
    expected = BatchHead(4, 8, max_timestamp_ms=2_000, byte_count=len(held), producer_id=7)
    assert heads_of(client, {0: 5}) == {0: expected}
    assert heads_of(client, {0: 2}) == {0: expected}
    assert heads_of(client, {0: 8})[0].base_offset == 8
    assert heads_of(client, {0: 8})[0].producer_id is None


def test_partitions_of_several_leaders_are_asked_in_turn(heads_of: Heads) -> None:
    led = metadata({0: (1, 5), 1: (2, 5), 2: (1, 5)})
    first = fetched(part(records=a_batch(0, 3)), part(partition=2, records=a_batch(6, 9)))
    client = ScriptedClient(
        metadata=[led], fetch=[first, fetched(part(partition=1, records=a_batch(3, 6)))]
    )
    found = heads_of(client, {0: 0, 1: 3, 2: 6})
    assert {each: head.base_offset for each, head in found.items()} == {0: 0, 1: 3, 2: 6}
    assert client.asked("fetch") == [1, 2]


def test_a_batch_that_does_not_fit_is_asked_for_alone(heads_of: Heads) -> None:
    client = ScriptedClient(
        metadata=[LED], fetch=[fetched(part(records=b"")), fetched(part(records=a_batch(3, 6)))]
    )
    assert heads_of(client, {0: 4})[0].until_offset == 6
    assert len(client.fetches()) == 2


def test_where_the_log_is_not_or_ends_there_is_no_head(heads_of: Heads) -> None:
    gone = ScriptedClient(metadata=[LED], fetch=[fetched(part(code=OUT_OF_RANGE))])
    assert heads_of(gone, {0: 4}) == {}
    ended = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=b""))])
    assert heads_of(ended, {0: 100}) == {}
    silent = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=b""))])
    assert heads_of(silent, {0: 4}) == {}


def test_records_without_a_time_tell_none(heads_of: Heads) -> None:
    untimed = a_batch(0, 1, timestamps=[-1])
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=untimed))])
    assert heads_of(client, {0: 0})[0].max_timestamp_ms is None


def test_an_unknown_format_is_told_with_its_place(heads_of: Heads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=a_batch(0, 1, magic=3)))])
    with pytest.raises(LogUnreadable, match="the batch of orders-0 at 0"):
        heads_of(client, {0: 0})


def test_the_size_of_records_is_that_of_the_batches_at_the_offsets(search: Search) -> None:
    large = a_batch(0, 3, codec="zstd", values=[b"a" * 50_000] * 3)
    answer = fetched(part(records=large), part(partition=1, records=a_batch(0, 9)))
    client = ScriptedClient(metadata=[metadata({0: (1, 5), 1: (1, 5)})], fetch=[answer])
    found = search(client, {0: 1, 1: 2}).bytes_per_record()
    assert found == {0: pytest.approx(50_000, rel=0.01), 1: pytest.approx(8, abs=3)}


def test_records_that_cannot_be_unpacked_are_taken_to_be_large(search: Search) -> None:
    damaged = a_batch(0, 3, codec="zstd")[:-9] + b"unreadable"[:9]
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=damaged))])
    assert search(client, {0: 0}).bytes_per_record() == {0: 100_000}
