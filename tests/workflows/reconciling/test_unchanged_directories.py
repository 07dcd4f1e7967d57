"""What has not changed since it was compared is not asked again until it is due; all else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.rules.findings import Finding
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.local_directory import LocalFileStore
from tests.support.story import FEED, Story, a_landed_story


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


def make_due(story: Story) -> None:
    with psycopg.connect(story.dsn, autocommit=True) as hand:
        hand.execute("UPDATE directory_look SET compared_at = compared_at - interval '8 days'")


def test_an_unchanged_feed_is_listed_and_not_asked(story: Story) -> None:
    first, _ = looked(story)
    assert [name for verb, name in first if verb == "checksum"] == [
        each.name for each in files(story)
    ]
    assert looked(story) == ([], ())


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
    with psycopg.connect(story.dsn, autocommit=True) as hand:
        hand.execute("ALTER TABLE file DISABLE TRIGGER file_append_only")
        hand.execute(
            "UPDATE file SET checksum = 'sha256:00' WHERE name = %s", [files(story)[0].name]
        )
    questions, _ = looked(story)
    assert ("checksum", files(story)[0].name) in questions


def test_what_no_listing_shows_is_found_when_it_is_due_and_stays_told(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked(story)
    rotten = files(story)[2].name
    really = LocalFileStore.checksum
    monkeypatch.setattr(
        LocalFileStore,
        "checksum",
        lambda store, path: "sha256:00" if path.endswith(rotten) else really(store, path),
    )
    assert looked(story) == ([], ())
    make_due(story)
    for _ in range(2):
        _, found = looked(story)
        assert {each.code.value for each in found} == {"C1"}
