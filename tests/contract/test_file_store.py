"""What every file store promises, on a local directory and on a real HDFS."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tallystick.errors import FileMissing, StorageError, StorageRefused, TargetOccupied
from tallystick.ports.file_store import FileStore, StoredEntry
from tests.support.local_directory import LocalFileStore

pytest_plugins = ["tests.support.store_fixtures"]

ODD_NAMES = [
    "a b",
    "p%20q",
    "100%",
    "ünï",
    "a+b",
    "a&b=c",
    "a#b",
    "#LATEST",
    "q?x",
    "a;b",
    "[x]{y}*",
    "_x",
    ".x",
    "'\"",
    "back\\slash",
]


def names(store: FileStore, path: str) -> list[str]:
    return [entry.name for entry in store.entries(path)]


class TestFiles:
    def test_what_was_written_is_read(self, store: FileStore, root: str) -> None:
        store.write(f"{root}/a/b/f", b"\x00\xff" * 1000)
        assert store.read(f"{root}/a/b/f") == b"\x00\xff" * 1000

    def test_an_empty_file_is_a_file(self, store: FileStore, root: str) -> None:
        store.write(f"{root}/f", b"")
        assert store.read(f"{root}/f") == b""
        assert store.status(f"{root}/f") == StoredEntry("f", False, 0)

    def test_writing_again_replaces(self, store: FileStore, root: str) -> None:
        store.write(f"{root}/f", b"the former, longer one")
        store.write(f"{root}/f", b"now")
        assert store.read(f"{root}/f") == b"now"
        assert names(store, root) == ["f"]

    def test_a_file_has_another_version_once_it_is_written_anew(
        self, store: FileStore, root: str
    ) -> None:
        def version() -> str:
            [entry] = store.entries(root)
            return entry.version

        store.write(f"{root}/f", b"one")
        first = version()
        assert store.read(f"{root}/f")
        assert store.checksum(f"{root}/f")
        assert version() == first
        store.write(f"{root}/f", b"two")  # as long, and perhaps within the clock's tick
        assert version() != first

    def test_a_directory_has_another_version_once_an_entry_is_written_or_deleted(
        self, store: FileStore, root: str
    ) -> None:
        def version() -> str:
            [entry] = store.entries(root)
            return entry.version

        seen = []
        for change in (
            lambda: store.write(f"{root}/d/f", b"one"),
            lambda: store.write(f"{root}/d/f", b"two"),
            lambda: store.rename_exclusive(f"{root}/d/f", f"{root}/d/g"),
            lambda: store.delete(f"{root}/d/g"),
        ):
            time.sleep(0.02)  # a change within the clock's tick need not show
            change()
            seen.append(version())
        assert len(set(seen)) == 4

    def test_what_is_changed_gets_the_time_of_the_file_systems_clock(
        self, store: FileStore, root: str
    ) -> None:
        before = store.clock_ms()
        store.write(f"{root}/d/f", b"")
        [entry] = store.entries(root)
        after = store.clock_ms()
        assert before is not None
        assert after is not None
        assert before <= entry.changed_ms < after + 1000

    def test_a_directory_is_no_file(self, store: FileStore, root: str) -> None:
        store.write(f"{root}/d/f", b"")
        for verb in (store.read, store.checksum):
            with pytest.raises(StorageRefused):
                verb(f"{root}/d")
        with pytest.raises(StorageRefused):
            store.write(f"{root}/d", b"")
        with pytest.raises(StorageRefused):
            store.entries(f"{root}/d/f")

    def test_what_is_missing_is_said_to_be(self, store: FileStore, root: str) -> None:
        assert store.status(f"{root}/f") is None
        for verb in (store.read, store.checksum, store.entries, store.read_back):
            with pytest.raises(FileMissing, match=f"{root}/f does not exist"):
                verb(f"{root}/f")

    def test_entries_are_sorted_and_say_what_they_are(self, store: FileStore, root: str) -> None:
        for name in ("b", "a", "B", "c/x"):
            store.write(f"{root}/{name}", b"12345")
        assert store.entries(root) == [
            StoredEntry("B", False, 5),
            StoredEntry("a", False, 5),
            StoredEntry("b", False, 5),
            StoredEntry("c", True, 0),
        ]
        assert store.status(f"{root}/c") == StoredEntry("c", True, 0)

    @pytest.mark.parametrize("name", ODD_NAMES)
    def test_a_name_is_kept_whatever_is_in_it(self, store: FileStore, root: str, name: str) -> None:
        store.write(f"{root}/{name}/{name}", b"x")
        store.rename_exclusive(f"{root}/{name}", f"{root}/to {name}/{name}")
        assert names(store, f"{root}/to {name}") == [name]
        assert store.read(f"{root}/to {name}/{name}/{name}") == b"x"
        assert store.checksum(f"{root}/to {name}/{name}/{name}")
        assert store.uri(f"{root}/{name}").endswith(f"{root}/{name}")
        assert store.delete(f"{root}/to {name}/{name}")

    @pytest.mark.parametrize("path", ["relative", "/a:b", "/a/../b", "/a//b"])
    def test_a_path_that_hdfs_could_not_hold_is_refused(self, store: FileStore, path: str) -> None:
        with pytest.raises(StorageRefused):
            store.write(path, b"")

    def test_the_checksum_follows_the_content(self, store: FileStore, root: str) -> None:
        for name, content in (("a", b"one"), ("b", b"one"), ("c", b"two")):
            store.write(f"{root}/{name}", content)
        one, same, other = (store.checksum(f"{root}/{name}") for name in "abc")
        assert one == same != other
        algorithm, _, digits = one.partition(":")
        assert algorithm
        assert int(digits, 16) > 0


class TestDelete:
    def test_deleting_takes_all_below(self, store: FileStore, root: str) -> None:
        store.write(f"{root}/a/b/f", b"")
        assert store.delete(f"{root}/a")
        assert not store.delete(f"{root}/a")
        assert names(store, root) == []

    def test_an_empty_directory_goes_and_a_full_one_stays(
        self, store: FileStore, root: str
    ) -> None:
        store.write(f"{root}/d/f", b"")
        assert not store.delete_empty(f"{root}/d")
        store.delete(f"{root}/d/f")
        assert store.delete_empty(f"{root}/d")
        assert not store.delete_empty(f"{root}/d")
        assert names(store, root) == []

    def test_deleting_an_empty_directory_never_deletes_a_file(
        self, store: FileStore, root: str
    ) -> None:
        store.write(f"{root}/f", b"")
        with pytest.raises(StorageRefused):
            store.delete_empty(f"{root}/f")
        assert names(store, root) == ["f"]


class TestRename:
    """Publishing is one such rename."""

    @pytest.fixture(autouse=True)
    def source(self, store: FileStore, root: str) -> str:
        store.write(f"{root}/staging/part", b"ours")
        return f"{root}/staging"

    def test_it_moves_all_at_once_and_makes_the_parent(
        self, store: FileStore, root: str, source: str
    ) -> None:
        store.write(f"{source}/sub/f", b"deep")
        store.rename_exclusive(source, f"{root}/a/b/batch=1")
        assert names(store, root) == ["a"]
        assert names(store, f"{root}/a/b/batch=1") == ["part", "sub"]
        assert store.read(f"{root}/a/b/batch=1/sub/f") == b"deep"

    @pytest.mark.parametrize("occupant", ["full directory", "empty directory", "file"])
    def test_a_target_that_exists_stays_as_it_is(
        self, store: FileStore, root: str, source: str, occupant: str
    ) -> None:
        target = f"{root}/target"
        store.write(target if occupant == "file" else f"{target}/f", b"theirs")
        if occupant == "empty directory":
            store.delete(f"{target}/f")
        with pytest.raises(TargetOccupied):
            store.rename_exclusive(source, target)
        assert store.read(f"{source}/part") == b"ours"
        if occupant == "file":
            assert store.read(target) == b"theirs"
        else:
            assert names(store, target) == (["f"] if occupant == "full directory" else [])

    def test_a_missing_source_is_said_to_be(self, store: FileStore, root: str) -> None:
        with pytest.raises(FileMissing, match="/nothing does not exist"):
            store.rename_exclusive(f"{root}/nothing", f"{root}/new/target")
        assert store.status(f"{root}/new/target") is None

    def test_a_missing_source_does_not_hide_that_the_target_is_there(
        self, store: FileStore, root: str, source: str
    ) -> None:
        """The finisher asks for both, so either answer serves; nothing may be moved."""
        with pytest.raises((FileMissing, TargetOccupied)):
            store.rename_exclusive(f"{root}/nothing", source)
        assert names(store, source) == ["part"]

    def test_a_directory_does_not_go_into_itself(
        self, store: FileStore, root: str, source: str
    ) -> None:
        with pytest.raises(StorageRefused):
            store.rename_exclusive(source, f"{source}/inside")
        assert names(store, source) == ["part"]

    def test_a_file_as_parent_of_the_target_is_refused(
        self, store: FileStore, root: str, source: str
    ) -> None:
        store.write(f"{root}/f", b"")
        with pytest.raises(StorageRefused):
            store.rename_exclusive(source, f"{root}/f/target")
        assert names(store, source) == ["part"]

    def test_of_many_renames_to_one_target_one_wins(self, store: FileStore, root: str) -> None:
        for rival in range(8):
            store.write(f"{root}/rival-{rival}/f", str(rival).encode())

        def publish(rival: int) -> bool:
            try:
                store.rename_exclusive(f"{root}/rival-{rival}", f"{root}/new/parent/target")
            except TargetOccupied:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            won = [rival for rival, has_won in enumerate(pool.map(publish, range(8))) if has_won]
        assert len(won) == 1
        assert names(store, f"{root}/new/parent/target") == ["f"]
        assert store.read(f"{root}/new/parent/target/f") == str(won[0]).encode()
        assert len(names(store, root)) == 7 + len({"new", "staging"})


class TestWritable:
    def test_asking_makes_the_root_and_leaves_nothing_in_it(
        self, store: FileStore, root: str
    ) -> None:
        store.require_writable(root)
        store.require_writable(root + "/")
        assert names(store, root) == ["_staging"]
        assert names(store, f"{root}/_staging") == []

    def test_many_may_ask_at_once(self, store: FileStore, root: str) -> None:
        with ThreadPoolExecutor(6) as pool:
            list(pool.map(store.require_writable, [root] * 12))
        assert names(store, f"{root}/_staging") == []

    def test_a_file_in_the_place_of_the_root_is_refused(self, store: FileStore, root: str) -> None:
        store.write(root, b"")
        with pytest.raises(StorageError) as caught:
            store.require_writable(root)
        assert not caught.value.retry


def test_a_local_store_never_leaves_its_directory(tmp_path: Path) -> None:
    store = LocalFileStore(tmp_path / "store")
    with pytest.raises(StorageRefused):
        store.write("/../outside", b"")
    assert [each.name for each in tmp_path.iterdir()] == ["store"]
