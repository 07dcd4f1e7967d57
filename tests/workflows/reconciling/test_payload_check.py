"""Records that a producer sent twice: told where a feed asks for it, within its horizon."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rules.findings import Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageUnavailable
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling import payload_check
from tallystick.workflows.reconciling.payload_check import look_at_payloads
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import NOW, Entry, Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")
MINUTE = timedelta(minutes=1)


def entry(value: str, minute: int = 0) -> Entry:
    at: datetime = NOW + minute * MINUTE
    return Entry(Kind.RECORD, value.encode(), int(at.timestamp() * 1000), 0)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two batches; the second repeats the end of the first one, and partition 1 an old record."""
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    first, other = story.broker.logs[0].entries, story.broker.logs[1].entries
    first += [entry("a"), entry("b"), entry("c")]
    other += [entry("a"), entry("beat")]
    land_feed(story.services(), None, OWNER)
    first += [entry("b", 1), entry("c", 1), entry("d", 1)]
    other += [entry("beat", 10)]
    land_feed(story.services(), None, OWNER)
    return story


def looking(story: Story, horizon: timedelta | None = 2 * MINUTE) -> Services:
    services = story.services()
    settings = services.feed.reconcile.model_copy(update={"payload_horizon": horizon})
    return replace(services, feed=services.feed.model_copy(update={"reconcile": settings}))


def told(services: Services) -> list[tuple[str, Verdict, int | None, int | None, int | None]]:
    return [
        (each.code.value, each.verdict, each.partition, each.from_offset, each.until_offset)
        for each in look_at_payloads(services).findings
    ]


def test_nobody_looks_unless_it_is_asked_for(story: Story) -> None:
    assert told(story.services()) == []


def test_a_repetition_is_told_across_batches_and_a_heartbeat_is_not(story: Story) -> None:
    assert told(looking(story)) == [("B3", Verdict.SUSPECTED, 0, 3, 5)]


def test_a_longer_horizon_sees_the_heartbeat(story: Story) -> None:
    assert told(looking(story, 10 * MINUTE)) == [
        ("B3", Verdict.SUSPECTED, 0, 3, 5),
        ("B3", Verdict.SUSPECTED, 1, 2, 3),
    ]


def test_only_the_newest_rows_are_read(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_check, "_ROWS_AT_MOST", 4)
    assert told(looking(story, 10 * MINUTE)) == []


def test_a_file_that_is_gone_or_damaged_is_left_to_other_rules(story: Story) -> None:
    older, newer = sorted(
        (story.directory / "landing" / FEED).rglob("*.parquet"),
        key=lambda each: each.stat().st_mtime_ns,
    )
    content = newer.read_bytes()
    newer.write_bytes(content[: len(content) // 2])
    older.unlink()
    assert told(looking(story)) == []


def test_a_silent_storage_is_unknown(story: Story) -> None:
    class Silent:
        def payloads(self, directory: str, file_name: str) -> None:
            raise StorageUnavailable(directory, "in safe mode")

    services = replace(looking(story), store=Silent())  # type: ignore[arg-type]
    assert told(services) == []
    [silence] = look_at_payloads(services).unheard
    assert (silence.code.value, silence.verdict) == ("U1", Verdict.UNKNOWN)


def standing(story: Story) -> list[tuple[str, int | None]]:
    found = story.services().ledger.findings(FEED)
    return [(each.finding.code.value, each.finding.from_offset) for each in found]


def test_a_look_at_all_rows_within_a_shorter_horizon_ends_what_it_does_not_find(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile(looking(story, 10 * MINUTE), Level.L3)
    assert standing(story) == [("B3", 3), ("B3", 2)]
    monkeypatch.setattr(payload_check, "_ROWS_AT_MOST", 4)
    reconcile(looking(story), Level.L3)
    assert standing(story) == [("B3", 3), ("B3", 2)]  # it has not seen all rows
    monkeypatch.undo()
    reconcile(looking(story))
    assert standing(story) == [("B3", 3), ("B3", 2)]  # nor has a look at level 2
    reconcile(looking(story), Level.L3)
    assert standing(story) == [("B3", 3)]


def test_a_feed_that_does_not_ask_any_more_ends_them(story: Story) -> None:
    reconcile(looking(story), Level.L3)
    report = reconcile(looking(story, None), Level.L3)
    assert report.findings == ()
    assert standing(story) == []


def test_a_storage_that_is_silent_ends_none_and_is_on_no_record(story: Story) -> None:
    class Silent(LocalFileStore):
        def payloads(self, directory: str, file_name: str) -> Iterator[tuple[int, Payload]]:
            raise StorageUnavailable(directory, "in safe mode")

    reconcile(looking(story), Level.L3)
    services = replace(looking(story), store=Silent(story.directory))
    report = reconcile(services, Level.L3)
    assert not report.is_complete
    assert standing(story) == [("B3", 3)]
