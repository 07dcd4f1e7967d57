"""A ledger that storage is ahead of lands nothing: offsets would be landed twice (A10)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import LedgerBehind
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run
from tallystick.workflows.stored.published_batches import why_behind
from tests.support.ledger_server import LedgerServer
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, FixedClock, Story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


class Listings:
    """A store that remembers which directories were listed."""

    def __init__(self, store: Any) -> None:
        self._store, self.listed = store, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def entries(self, path: str) -> Sequence[StoredEntry]:
        self.listed.append(path)
        found: Sequence[StoredEntry] = self._store.entries(path)
        return found


def hours_listed(story: Story) -> int:
    """How many hours' directories one look before a plan lists."""
    services = story.services()
    store = Listings(services.store)
    assert why_behind(replace(services, store=store)) is None
    return sum("/hour=" in each for each in store.listed)


def hour_of(story: Story) -> Path:
    [hour] = (story.directory / "landing" / FEED).glob("gen=*/dt=*/hour=*")
    return hour


def aged(path: Path, seconds: int) -> None:
    """The directory was changed so long before."""
    changed = path.stat().st_mtime - seconds
    os.utime(path, (changed, changed))


def test_nothing_is_landed_by_a_ledger_that_was_lost(
    story: Story, ledger_databases: Callable[[], str]
) -> None:
    land_feed(story.services(), None, OWNER)
    landed = story.published_offsets()
    lost = Story(ledger_databases(), story.directory, story.broker)
    for _ in range(2):
        with pytest.raises(LedgerBehind, match="HDFS holds 1 batch that the ledger does not know"):
            land_feed(lost.services(), None, OWNER)
    assert story.published_offsets() == landed
    [stored] = lost.services().ledger.findings(FEED)
    assert stored.finding.code is FindingCode.LEDGER_BEHIND
    assert stored.finding.subject.startswith("/landing/orders/gen=1/")


def test_a_dry_run_says_so_too_and_leaves_nothing_on_record(
    story: Story, ledger_databases: Callable[[], str]
) -> None:
    land_feed(story.services(), None, OWNER)
    lost = Story(ledger_databases(), story.directory, story.broker)
    with pytest.raises(LedgerBehind):
        dry_run(lost.services(), None)
    assert lost.services().ledger.findings(FEED) == []


def test_a_ledger_that_knows_all_goes_on(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 3)
    assert not land_feed(story.services(), None, OWNER).errors


def test_an_hour_that_is_as_it_was_is_not_listed_again(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    aged(hour_of(story), 7200)
    assert hours_listed(story) == 1
    assert hours_listed(story) == 0


@pytest.mark.parametrize("seconds", [0, -5 * 3600], ids=["just now", "in the future"])
def test_an_hour_that_has_changed_by_no_settled_time_is_listed_in_each_look(
    story: Story, seconds: int
) -> None:
    land_feed(story.services(), None, OWNER)
    aged(hour_of(story), seconds)
    assert [hours_listed(story), hours_listed(story)] == [1, 1]


def test_what_changes_in_a_known_hour_is_seen(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    hour = hour_of(story)
    aged(hour, 7200)
    hours_listed(story)
    [batch] = hour.iterdir()
    foreign = hour / f"batch={'f' * 16}"
    foreign.mkdir()
    (foreign / "_tally.json").write_bytes((batch / "_tally.json").read_bytes())
    assert why_behind(story.services())


class AnHourLater(FixedClock):
    """A clock by which the next batch has another hour."""

    def now(self) -> datetime:
        """The instant."""
        return NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("first", "second"),
    [(0, 0), (-5 * 3600, 0), (0, 2 * 3600)],
    ids=["right", "was ahead", "is behind"],
)
def test_a_restored_ledger_lands_nothing_again_whatever_the_clocks_of_the_hours_were(
    story: Story, ledger_server: LedgerServer, first: int, second: int
) -> None:
    """Seconds by which the NameNode's clock was behind when each hour was changed."""
    land_feed(story.services(), None, OWNER)
    hour = hour_of(story)
    aged(hour, first)
    assert why_behind(story.services()) is None
    name = story.dsn.rpartition("/")[2]
    ledger_server.create(f"{name}_backup", template=name)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(replace(story.services(), clock=AnHourLater()), None, OWNER)
    [later] = (each for each in hour.parent.iterdir() if each != hour)
    aged(later, second)
    restored = replace(story, dsn=ledger_server.dsn(f"{name}_backup"))
    landed = story.published_offsets()
    with pytest.raises(LedgerBehind):
        land_feed(restored.services(), None, OWNER)
    assert story.published_offsets() == landed
