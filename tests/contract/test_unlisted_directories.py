"""A directory that is shown as before is not listed; what changes in it is found all the same."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import requests

from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.identities import Owner
from tallystick.ports.file_store import FileStore
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.ledger_server import OWNER_ROLE
from tests.support.local_directory import LocalFileStore
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import FEED, Story

pytest_plugins = ["tests.support.store_fixtures"]

HOURS_AGO = 1_000_000_000_000
YEARS_AHEAD = 4_000_000_000_000


@dataclass
class Asked:
    """A port that counts its questions: what was asked of the readers' tree, by verb and path."""

    port: Any
    questions: list[tuple[str, str]] = field(default_factory=list)
    answered: dict[str, int] = field(default_factory=dict)
    """How many rows each question of the ledger has brought."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.port, name)

        def asked(*args: Any, **named: Any) -> Any:
            answer = found(*args, **named)
            with self.lock:
                self.questions.append((name, str(args[0]) if args else ""))
                if isinstance(answer, list):
                    self.answered[name] = self.answered.get(name, 0) + len(answer)
            return answer

        return asked if callable(found) else found


@dataclass
class Scene:
    """Batches of one hour, landed in a store."""

    story: Story
    store: FileStore
    root: str
    hands: Hands

    def services(self, store: Any = None) -> Services:
        services = self.story.services()
        target = services.feed.target.model_copy(update={"root": self.root})
        return replace(
            services,
            feed=services.feed.model_copy(update={"target": target}),
            store=store or self.store,
            spark=ScriptedSpark(self.story.broker, self.store),
        )

    def land(self, batches: int) -> None:
        for _ in range(batches):
            for log in self.story.broker.logs.values():
                log.append(Kind.RECORD, 10)
            land_feed(self.services(), None, Owner("before"))

    @property
    def hour(self) -> str:
        place = f"{self.root}/{FEED}"
        for _ in ("gen=", "dt=", "hour="):
            [entry] = self.store.entries(place)
            place = f"{place}/{entry.name}"
        return place

    @property
    def batches(self) -> list[str]:
        return [f"{self.hour}/{each.name}" for each in self.store.entries(self.hour)]

    def file(self) -> tuple[str, str]:
        """Directory and name of one landed file."""
        directory = self.batches[0]
        names = [each.name for each in self.store.entries(directory)]
        return directory, next(each for each in names if each.endswith(".parquet"))

    def look(self, store: Any = None) -> tuple[Asked, Asked, set[str]]:
        """What a look asked of the store and of the ledger, and what it has found."""
        services = self.services(store)
        asked, ledger = Asked(services.store), Asked(services.ledger)
        report = reconcile(replace(services, store=asked, ledger=ledger))  # type: ignore[arg-type]
        inside = [each for each in asked.questions if each[1].startswith(f"{self.root}/{FEED}")]
        return replace(asked, questions=inside), ledger, {e.code.value for e in report.findings}

    def found(self) -> set[str]:
        return self.look()[2]

    def settle(self, at_ms: int = HOURS_AGO) -> None:
        """A look has found all well since the directories were last changed, long ago."""
        for each in self.batches:
            self.hands.set_time(each, at_ms)
        assert self.found() == set()

    def make_due(self) -> None:
        with psycopg.connect(self.story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
            hand.execute("UPDATE directory_look SET compared_at = compared_at - interval '2 days'")


class Hands:
    """Changes what lies in a store behind its back."""

    def __init__(self, store: FileStore, directory: Path) -> None:
        self._store, self._directory = store, directory

    def set_time(self, path: str, at_ms: int) -> None:
        local = f"{self._directory}{path}"
        os.utime(local, ns=(at_ms * 1_000_000, at_ms * 1_000_000))

    def append(self, path: str, content: bytes) -> None:
        with open(f"{self._directory}{path}", "ab") as file:
            file.write(content)

    def move(self, source: str, target: str) -> None:
        self._store.rename_exclusive(source, target)


class HandsInHdfs(Hands):
    def __init__(self, store: FileStore, url: str, user: str) -> None:
        self._store, self._url, self._user = store, f"{url}/webhdfs/v1", user

    def set_time(self, path: str, at_ms: int) -> None:
        self._ask("PUT", path, op="SETTIMES", modificationtime=at_ms)

    def append(self, path: str, content: bytes) -> None:
        place = self._ask("POST", path, op="APPEND", allow_redirects=False).headers["Location"]
        requests.post(place, data=content, timeout=10).raise_for_status()

    def _ask(
        self, method: str, path: str, allow_redirects: bool = True, **query: Any
    ) -> requests.Response:
        answer = requests.request(
            method,
            self._url + quote(path),
            params={"user.name": self._user, **query},
            timeout=10,
            allow_redirects=allow_redirects,
        )
        answer.raise_for_status()
        return answer


@pytest.fixture
def scene(
    request: pytest.FixtureRequest,
    ledger_databases: Callable[[], str],
    store: FileStore,
    root: str,
    tmp_path: Path,
) -> Scene:
    """Two batches in one hour."""
    if isinstance(store, LocalFileStore):
        hands = Hands(store, tmp_path / "store")
    else:
        hdfs = request.getfixturevalue("hdfs")
        hands = HandsInHdfs(store, hdfs.webhdfs_url, hdfs.user)
    story = Story(ledger_databases(), tmp_path / "unused", ScriptedBroker("orders"))
    scene = Scene(story, store, root, hands)
    scene.land(2)
    return scene


def test_what_an_unchanged_feed_is_asked_does_not_grow_with_its_batches(scene: Scene) -> None:
    scene.settle()
    few, _, _ = scene.look()
    scene.land(5)
    scene.settle()
    many, ledger, found = scene.look()
    assert found == set()
    # The feed, its generation, the day, and the hour; no batch.
    assert [verb for verb, _ in many.questions] == ["entries"] * 4
    assert sorted(many.questions) == sorted(few.questions)
    assert ledger.answered["batch_places"] == 7
    assert ledger.answered["directories"] == 0


def test_only_what_has_changed_is_listed(scene: Scene) -> None:
    scene.settle()
    scene.land(1)
    asked, ledger, _ = scene.look()
    listed = [path for verb, path in asked.questions if verb == "entries" and "batch=" in path]
    assert len(listed) == ledger.answered["directories"] == 1


def add(scene: Scene, directory: str, name: str) -> None:
    scene.store.write(f"{directory}/copy.parquet", scene.store.read(f"{directory}/{name}"))


def add_below(scene: Scene, directory: str, name: str) -> None:
    scene.store.write(f"{directory}/x=1/copy.parquet", scene.store.read(f"{directory}/{name}"))


def delete(scene: Scene, directory: str, name: str) -> None:
    scene.store.delete(f"{directory}/{name}")


def rename(scene: Scene, directory: str, name: str) -> None:
    scene.hands.move(f"{directory}/{name}", f"{directory}/renamed.parquet")


def move_away(scene: Scene, directory: str, name: str) -> None:
    scene.hands.move(f"{directory}/{name}", f"{scene.root}/away/{name}")


def overwrite(scene: Scene, directory: str, name: str) -> None:
    """With as many bytes."""
    content = bytearray(scene.store.read(f"{directory}/{name}"))
    content[10] ^= 1
    scene.store.write(f"{directory}/{name}", bytes(content))


def overwrite_manifest(scene: Scene, directory: str, _name: str) -> None:
    overwrite(scene, directory, MANIFEST_NAME)


def replace_directory(scene: Scene, directory: str, name: str) -> None:
    """By one of the same age, in which a file is missing."""
    scene.hands.move(directory, f"{scene.root}/away/whole")
    scene.hands.move(f"{scene.root}/away/whole/{name}", f"{scene.root}/away/{name}")
    for each in scene.store.entries(f"{scene.root}/away/whole"):
        content = scene.store.read(f"{scene.root}/away/whole/{each.name}")
        scene.store.write(f"{directory}/{each.name}", content)
    scene.hands.set_time(directory, HOURS_AGO)


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        (add, {"A9", "B2"}),
        (add_below, {"A9", "B2"}),
        (delete, {"A8"}),
        (rename, {"A8", "A9"}),
        (move_away, {"A8"}),
        (overwrite, {"C1"}),
        (overwrite_manifest, {"N3"}),
        (replace_directory, {"A8"}),
    ],
)
def test_what_changes_in_a_directory_is_found_at_once(
    scene: Scene, change: Callable[[Scene, str, str], None], codes: set[str]
) -> None:
    scene.settle()
    change(scene, *scene.file())
    for _ in range(2):  # and is told as long as it is so
        assert scene.found() == codes


def test_what_is_changed_in_a_files_own_bytes_is_found_when_it_is_due(scene: Scene) -> None:
    directory, name = scene.file()
    scene.settle()
    scene.hands.append(f"{directory}/{name}", b"more")
    assert scene.found() == set()
    scene.make_due()
    for _ in range(2):
        assert scene.found() == {"C1"}


def test_a_directory_that_was_changed_within_the_hour_is_listed(scene: Scene) -> None:
    """The next change may come in the same millisecond, or from a NameNode with another clock."""
    scene.found()
    asked, ledger, _ = scene.look()
    assert ("entries", scene.batches[0]) in asked.questions
    assert ledger.answered["directories"] == 2


def test_a_directory_from_after_the_file_systems_clock_is_listed(scene: Scene) -> None:
    """The clock was set back, or the time by hand: no change gives it another one."""
    directory, name = scene.file()
    scene.settle(at_ms=YEARS_AHEAD)
    assert ("entries", directory) in scene.look()[0].questions
    overwrite(scene, directory, name)
    assert scene.found() == {"C1"}


@pytest.mark.parametrize("call", [4, 5, 6])
def test_a_change_beside_a_look_is_found_by_the_next_one(scene: Scene, call: int) -> None:
    """Between its hour's listing and its own, and after that."""
    for each in scene.batches:
        scene.hands.set_time(each, HOURS_AGO)
    directory, name = scene.file()
    beside = Meanwhile(
        scene.store, lambda: add(scene, directory, name), method="entries", call=call
    )
    scene.look(beside)
    assert scene.found() == {"A9", "B2"}


def test_a_look_that_broke_off_leaves_nothing_on_record(scene: Scene) -> None:
    for each in scene.batches:
        scene.hands.set_time(each, HOURS_AGO)

    class Broken(Exception):
        pass

    def breaks() -> None:
        raise Broken

    with pytest.raises(Broken):
        scene.look(Meanwhile(scene.store, breaks, method="checksum"))
    asked, _, _ = scene.look()
    assert {verb for verb, _ in asked.questions} >= {"entries", "checksum", "read"}


def test_without_a_clock_of_the_file_system_each_directory_is_listed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(scene.store), "clock_ms", lambda _: None)
    scene.settle()
    asked, _, _ = scene.look()
    assert {("entries", each) for each in scene.batches} <= set(asked.questions)
