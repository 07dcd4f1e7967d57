"""What has not changed since it was compared is not asked again until it is due; all else is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tallystick.domain.batches.paths import MANIFEST_NAME, BatchPath
from tallystick.domain.rules.findings import Finding, Level
from tallystick.errors import StorageUnavailable
from tallystick.ledger.scrubs import TakenSample
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of
from tests.support.ledger_server import OWNER_ROLE
from tests.support.local_directory import LocalFileStore
from tests.support.meanwhile import Meanwhile
from tests.support.repaired import repaired
from tests.support.story import FEED, FixedClock, Story, a_landed_story

DAY = timedelta(days=1)


class Asked:
    """The store, with what each look asks it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.questions: list[tuple[str, str]] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)

        def asked(path: str, *more: Any, **named: Any) -> Any:
            self.questions.append((name, Path(path).name))
            return found(path, *more, **named)

        return asked if name in ("checksum", "read", "read_back") else found


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Three batches are landed."""
    return a_landed_story(ledger_databases(), tmp_path, 10, 10, 10)


def looked(story: Story) -> tuple[list[tuple[str, str]], tuple[Finding, ...]]:
    """What the files were asked by one reconcile, and what it found."""
    services = story.services()
    store = Asked(services.store)
    found = reconcile(replace(services, store=store)).findings  # type: ignore[arg-type]
    return sorted(store.questions), tuple(found)


def files(story: Story) -> list[Path]:
    return sorted((story.directory / "landing" / FEED).rglob("*.parquet"))


def make_older(story: Story, by: timedelta) -> None:
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("UPDATE directory_look SET compared_at = compared_at - %s::interval", [by])


def rot(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The file has other bytes from here on, which no listing shows."""
    really = LocalFileStore.checksum
    monkeypatch.setattr(
        LocalFileStore,
        "checksum",
        lambda store, path: "sha256:00" if path.endswith(name) else really(store, path),
    )


def refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The file's bytes can't be read from here on."""
    really = LocalFileStore.checksum

    def checksum(store: LocalFileStore, path: str) -> str:
        if path.endswith(name):
            raise StorageUnavailable(path, "no DataNode has a block")
        return really(store, path)

    monkeypatch.setattr(LocalFileStore, "checksum", checksum)


def test_an_unchanged_feed_is_listed_and_not_asked(story: Story) -> None:
    first, _ = looked(story)
    assert [name for verb, name in first if verb == "checksum"] == [
        each.name for each in files(story)
    ]
    assert looked(story) == ([], ())


@pytest.mark.parametrize(
    ("kept", "is_due"),
    [
        (timedelta(hours=6), True),
        (timedelta(milliseconds=1), False),  # the log has none of their rows any more
        (timedelta(days=8), False),
        (None, False),
    ],
)
def test_a_directory_is_due_in_time_to_land_its_rows_again(
    story: Story, monkeypatch: pytest.MonkeyPatch, kept: timedelta | None, is_due: bool
) -> None:
    story.broker.retention_ms = kept // timedelta(milliseconds=1) if kept else None
    looked(story)
    rot(monkeypatch, files(story)[0].name)
    make_older(story, timedelta(hours=1))
    assert {each.code.value for each in looked(story)[1]} == ({"C1"} if is_due else set())


def test_one_rewritten_file_is_asked_at_once_and_no_other(story: Story) -> None:
    looked(story)
    file = files(story)[1]
    content = bytearray(file.read_bytes())
    content[10] ^= 1
    file.write_bytes(content)  # in its place, with its length
    for _ in range(2):  # it is asked as long as it is not as committed
        questions, found = looked(story)
        assert {name for verb, name in questions if verb == "checksum"} == {file.name}
        assert {each.code.value for each in found} == {"C1"}


def test_a_file_that_went_and_came_back_is_missed_meanwhile(story: Story) -> None:
    looked(story)
    file = files(story)[0]
    aside = story.directory / "aside"
    file.rename(aside)
    _, found = looked(story)
    assert {each.code.value for each in found} == {"A8"}
    aside.rename(file)
    _, found = looked(story)
    assert found == ()


def test_a_manifest_of_other_bytes_is_found_at_once(story: Story) -> None:
    looked(story)
    [manifest, *_] = sorted((story.directory / "landing" / FEED).rglob(MANIFEST_NAME))
    content = bytearray(manifest.read_bytes())
    content[-3] ^= 1
    manifest.write_bytes(content)
    questions, found = looked(story)
    assert [each.code.value for each in found] == ["N3"]
    assert ("read", manifest.name) in questions


def test_a_changed_record_of_the_ledger_is_compared_at_once(story: Story) -> None:
    looked(story)
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE file DISABLE TRIGGER file_append_only")
        hand.execute(
            "UPDATE file SET checksum = 'sha256:00' WHERE name = %s", [files(story)[0].name]
        )
    questions, _ = looked(story)
    assert ("checksum", files(story)[0].name) in questions


@pytest.mark.parametrize(("age", "is_due"), [(23, False), (25, True)])
def test_a_directory_is_due_after_a_day(story: Story, age: int, is_due: bool) -> None:
    looked(story)
    make_older(story, timedelta(hours=age))
    questions, _ = looked(story)
    assert bool(questions) is is_due


def test_a_directory_is_due_earlier_where_the_feed_says_so(story: Story) -> None:
    looked(story)
    make_older(story, timedelta(hours=3))
    services = story.services()
    often = services.feed.reconcile.model_copy(update={"scrub_every": timedelta(hours=2)})
    feed = services.feed.model_copy(update={"reconcile": often})
    store = Asked(services.store)
    reconcile(replace(services, feed=feed, store=store))  # type: ignore[arg-type]
    assert store.questions


def test_what_no_listing_shows_is_found_when_it_is_due_and_stays_told(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked(story)
    rot(monkeypatch, files(story)[2].name)
    assert looked(story) == ([], ())
    make_older(story, timedelta(days=2))
    for _ in range(2):
        _, found = looked(story)
        assert {each.code.value for each in found} == {"C1"}


def test_a_look_that_began_before_a_file_rotted_does_not_end_what_a_later_one_found(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked(story)
    make_older(story, timedelta(days=2))

    def rots_and_is_found() -> None:
        rot(monkeypatch, files(story)[2].name)
        assert {each.code.value for each in looked(story)[1]} == {"C1"}

    services = story.services()
    # Its files are asked before the manifests, so the first look has found this one well.
    store = Meanwhile(services.store, rots_and_is_found, method="read")
    reconcile(replace(services, store=store))  # type: ignore[arg-type]
    questions, found = looked(story)
    assert ("checksum", files(story)[2].name) in questions
    assert {each.code.value for each in found} == {"C1"}
    assert {each.finding.code.value for each in services.ledger.findings(FEED)} == {"C1"}


def test_a_slower_look_does_not_end_what_was_found_of_a_manifest(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked(story)
    ledger = story.services().ledger
    seen = ledger.directory_looks(FEED, DAY)
    make_older(story, timedelta(days=2))
    [manifest, *_] = sorted((story.directory / "landing" / FEED).rglob(MANIFEST_NAME))
    broken = str(manifest.relative_to(story.directory))
    really = LocalFileStore.read
    monkeypatch.setattr(
        LocalFileStore,
        "read",
        lambda store, path: b"{}" if path.endswith(broken) else really(store, path),
    )
    assert [each.code.value for each in looked(story)[1]] == ["N3"]
    # By a look that had asked it before.
    ledger.note_directory_looks(seen, [], compared_at=ledger.clock())
    assert [each.code.value for each in looked(story)[1]] == ["N3"]


@pytest.mark.parametrize(
    ("level", "is_asked"), [(Level.L2, True), (Level.L3, True), (Level.L4, False)]
)
def test_a_batch_that_could_not_be_read_since_is_asked_at_once(
    story: Story, level: Level, is_asked: bool
) -> None:
    looked(story)
    ledger = story.services().ledger
    unread = BatchPath.parse(str(files(story)[1].parent)).batch_id
    if level is Level.L4:
        taken = TakenSample(0, 1, 1, 0, "its log has begun later")
        ledger.record_sample(unread, taken, is_clean=False)
    else:
        ledger.record_unread([unread], level)
    questions, _ = looked(story)
    asked = {name for verb, name in questions if verb == "checksum"}
    assert asked == ({files(story)[1].name} if is_asked else set())


def test_a_look_from_after_the_ledgers_clock_is_none(story: Story) -> None:
    looked(story)
    make_older(story, timedelta(hours=-2))  # the clock was set back
    questions, _ = looked(story)
    assert questions


def test_a_look_counts_from_when_it_began(story: Story) -> None:
    services = story.services()
    begun: list[datetime] = []
    store = Meanwhile(
        services.store, lambda: begun.append(services.ledger.clock()), method="checksum"
    )
    reconcile(replace(services, store=store))  # type: ignore[arg-type]
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        rows = hand.execute("SELECT compared_at FROM directory_look").fetchall()
    assert len(rows) == 3
    assert max(at for (at,) in rows) < begun[0]


class Today(FixedClock):
    """Has the time of the ledger's machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def test_a_report_says_since_when_each_batch_was_looked_at(story: Story) -> None:
    looked(story)
    make_older(story, timedelta(hours=5))
    services = replace(story.services(), clock=Today())
    document = report_of(services, reconcile(services))
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        oldest = hand.execute("SELECT min(compared_at) FROM directory_look").fetchone()
    assert {each.checked_at["L2"] for each in document.partitions} == set(oldest or ())


def test_a_directory_is_asked_in_each_look_where_the_store_does_not_tell_files_apart(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = LocalFileStore.entries
    monkeypatch.setattr(
        LocalFileStore,
        "entries",
        lambda store, path: [replace(each, version="") for each in really(store, path)],
    )
    first, _ = looked(story)
    again, _ = looked(story)
    assert [each for each in again if each[0] != "read_back"] == [
        each for each in first if each[0] != "read_back"
    ]


def stray_copy_of(story: Story, file: Path) -> None:
    (story.directory / "landing" / FEED / "gen=1" / "copy.parquet").write_bytes(file.read_bytes())


def test_a_stray_doubles_the_rows_of_a_file_that_has_not_changed(story: Story) -> None:
    looked(story)
    file = files(story)[2]
    stray_copy_of(story, file)
    questions, found = looked(story)
    assert {each.code.value for each in found} == {"A9", "B2"}
    assert {name for verb, name in questions if verb == "checksum"} == {file.name}


@pytest.mark.parametrize("lost", [False, True])
def test_a_stray_is_no_double_of_a_file_that_is_no_more_as_it_was_committed(
    story: Story, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """No listing shows that, and the stray is the only copy, or may be."""
    looked(story)
    file = files(story)[2]
    stray_copy_of(story, file)
    if lost:
        refuse(monkeypatch, file.name)
    else:
        rot(monkeypatch, file.name)
    _, found = looked(story)
    [stray] = [each for each in found if each.code.value == "A9"]
    assert {each.code.value for each in found} == ({"A9", "U1"} if lost else {"A9"})
    assert (stray.evidence["sole_rows"] is None) is lost


def test_a_directory_of_which_a_repair_has_replaced_a_file_is_listed_in_each_look(
    story: Story,
) -> None:
    """The ledger has it otherwise before anything is moved in the directory itself."""
    for each in files(story):
        os.utime(each.parent, (0, 0))
    looked(story)
    services = story.services()
    assert all(each.shown_as for each in services.ledger.directory_looks(FEED, DAY).values())
    record = services.ledger.files(FEED)[0]
    repaired(services, record)
    looked(story)
    shown = services.ledger.directory_looks(FEED, DAY)
    assert not shown[record.batch_id].shown_as
    assert sum(each.shown_as is not None for each in shown.values()) == 2
