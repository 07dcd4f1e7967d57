"""Offsets by time where deleted records lead the broker's time index astray."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.errors import BrokerUnavailable, LogUnreadable
from tallystick.sources import broker_view, leader_connections
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_batches import a_batch
from tests.support.kafka_scripted import ScriptedClient, fetched, metadata, part

EARLIEST, NEWEST = -2, -3
START = datetime(2026, 11, 1, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
# Offsets 5 to 8; what was before them is deleted. The times are seconds after START.
TIMES = (3, 1, 4, 2)
LOG = b"".join(
    a_batch(
        first, first + 2, timestamps=[START_MS + 1000 * TIMES[at - 5] for at in (first, first + 1)]
    )
    for first in (5, 7)
)


def view_of(
    monkeypatch: pytest.MonkeyPatch, *, newest: float, starts: tuple[int, ...] = (5,), **fetch: Any
) -> tuple[KafkaBrokerView, ScriptedClient]:
    """A view of a log whose time index finds nothing."""
    log_starts = list(starts)

    def offsets(request: Any) -> Any:
        (asked,) = request.topics[0].partitions
        found = {EARLIEST: (log_starts[0], -1), NEWEST: (4, START_MS + int(newest * 1000))}
        if asked.timestamp == EARLIEST and len(log_starts) > 1:
            log_starts.pop(0)
        offset, time_ms = found.get(asked.timestamp, (-1, -1))
        answer = SimpleNamespace(partition_index=0, error_code=0, offset=offset, timestamp=time_ms)
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[answer])])

    client = ScriptedClient(
        metadata=[metadata({0: (1, 0)})],
        offsets=[offsets],
        fetch=fetch.get("fetch") or [fetched(part(records=LOG, high=9))],
    )
    monkeypatch.setattr(leader_connections, "open_client", lambda config: client)
    return KafkaBrokerView({"bootstrap.servers": "one:9092"}, now=lambda: START), client


@pytest.mark.parametrize(("seconds", "offset"), [(0, 5), (3, 5), (3.001, 7), (4, 7)])
def test_what_the_index_leaves_out_is_found_in_the_log(
    monkeypatch: pytest.MonkeyPatch, seconds: float, offset: int
) -> None:
    view, _ = view_of(monkeypatch, newest=60)
    assert view.offsets_at("orders", START + timedelta(seconds=seconds), [0]) == {0: offset}


def test_nothing_is_found_where_only_deleted_records_were_as_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = fetched(part(records=b"", high=9))
    view, client = view_of(monkeypatch, newest=60, fetch=[fetched(part(records=LOG, high=9)), end])
    assert view.offsets_at("orders", START + timedelta(seconds=5), [0]) == {0: None}
    assert len(client.asked("fetch")) == 2


def test_a_log_that_ends_without_a_batch_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = [fetched(part(records=LOG, high=12)), fetched(part(records=b"", high=12))]
    view, _ = view_of(monkeypatch, newest=60, fetch=script)
    assert view.offsets_at("orders", START + timedelta(seconds=5), [0]) == {0: None}


def test_what_its_first_batch_has_below_the_log_s_start_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, _ = view_of(monkeypatch, newest=60, starts=(6,))
    assert view.offsets_at("orders", START + timedelta(seconds=2), [0]) == {0: 7}


def test_the_log_is_not_read_where_no_record_was_ever_as_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, client = view_of(monkeypatch, newest=4)
    assert view.offsets_at("orders", START + timedelta(seconds=5), [0]) == {0: None}
    assert client.asked("fetch") == []


def test_a_log_that_expires_under_the_search_is_read_from_its_new_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out_of_range = fetched(part(code=1))
    view, client = view_of(
        monkeypatch,
        newest=60,
        starts=(2, 5),
        fetch=[out_of_range, fetched(part(records=LOG, high=9))],
    )
    assert view.offsets_at("orders", START, [0]) == {0: 5}
    assert [places for _, places in client.fetches()] == [[(0, 2, 0)], [(0, 5, 0)]]


def test_a_log_that_is_cut_under_the_search_is_to_be_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    view, _ = view_of(monkeypatch, newest=60, fetch=[fetched(part(code=1))])
    with pytest.raises(BrokerUnavailable, match="orders-0 was cut"):
        view.offsets_at("orders", START, [0])


def test_a_search_that_takes_too_long_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    view, _ = view_of(monkeypatch, newest=60)
    monkeypatch.setattr(broker_view, "_LONGEST_SECONDS", -1.0)
    with pytest.raises(BrokerUnavailable, match="came to offset 5"):
        view.offsets_at("orders", START, [0])


def test_a_damaged_batch_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = LOG[:16] + b"\x09" + LOG[17:]
    view, _ = view_of(monkeypatch, newest=60, fetch=[fetched(part(records=damaged, high=9))])
    with pytest.raises(LogUnreadable, match="orders-0 at 5"):
        view.offsets_at("orders", START, [0])
