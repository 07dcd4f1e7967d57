"""The file store over a local directory, with HDFS's promises: for tests.

Its own renames exclude one another by a lock on the directory; other programs are not kept out.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from tallystick.errors import FileMissing, StorageRefused, StorageUnavailable, TargetOccupied
from tallystick.ports.file_store import StoredEntry
from tallystick.storage.any_store import AnyStore, checked


class LocalFileStore(AnyStore):
    """One local directory as a file system of its own; fulfils `FileStore`. Made if missing."""

    def __init__(self, directory: Path) -> None:
        self._root = directory.resolve()
        self._root.mkdir(parents=True, exist_ok=True)

    def uri(self, path: str) -> str:
        """The path as file://, not escaped: Hadoop takes a URI's path literally."""
        return f"file://{self._local(path)}"

    def clock_ms(self) -> int | None:
        """The machine's time."""
        return time.time_ns() // 1_000_000

    def write(self, path: str, content: bytes) -> None:
        """Write a whole small file at once."""
        local = self._local(path)
        with _translated(path):
            local.parent.mkdir(parents=True, exist_ok=True)
            if local.is_dir():
                raise StorageRefused(path, "it is a directory, not a file")
            fresh = local.with_name(f".{uuid4().hex}")
            try:
                fresh.write_bytes(content)
                fresh.replace(local)
            finally:
                fresh.unlink(missing_ok=True)

    def read(self, path: str) -> bytes:
        """A whole small file."""
        local = self._local(path)
        with _translated(path):
            return local.read_bytes()

    def read_range(self, path: str, position: int, length: int) -> bytes:
        """Exactly these bytes; StorageUnavailable when the file is shorter."""
        with _translated(path), self._local(path).open("rb") as file:
            content = os.pread(file.fileno(), length, position)
        if len(content) != length:
            raise StorageUnavailable(
                path, f"{len(content)} bytes came at {position} where {length} were asked for"
            )
        return content

    def status(self, path: str) -> StoredEntry | None:
        """The entry at the path; None if there is none."""
        local = self._local(path)
        with _translated(path):
            return _entry(local) if local.exists() else None

    def entries(self, path: str) -> Sequence[StoredEntry]:
        """The entries of a directory, sorted by name."""
        local = self._local(path)
        with _translated(path):
            return sorted(_entries(local), key=lambda entry: entry.name)

    def checksum(self, path: str) -> str:
        """SHA-256 of the bytes."""
        with _translated(path):
            return f"sha256:{sha256(self._local(path).read_bytes()).hexdigest()}"

    def rename_exclusive(self, source: str, target: str) -> None:
        """Rename under the lock: a plain rename would replace an empty directory."""
        old, new = self._local(source), self._local(target)
        with _translated(source), self._lock():
            new.parent.mkdir(parents=True, exist_ok=True)
            if new.exists():
                raise TargetOccupied(source, target)
            if not old.exists():
                raise FileMissing(source)
            old.rename(new)

    def take_rights(self, directory: str, within: str) -> None:
        """Nothing: a directory here gives none."""

    def delete(self, path: str) -> bool:
        """Delete the path and all below it; False if it wasn't there."""
        local = self._local(path)
        with _translated(path):
            if local.is_dir():
                while local.exists():  # others may delete the same, and be quicker
                    with suppress(FileNotFoundError):
                        shutil.rmtree(local)
                return True
            is_there = local.exists()
            local.unlink(missing_ok=True)
            return is_there

    def delete_empty(self, directory: str) -> bool:
        """Delete the directory; False if it holds something, or isn't there."""
        local = self._local(directory)
        with _translated(directory):
            try:
                local.rmdir()
            except FileNotFoundError:
                return False
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                return False
            return True

    def _local(self, path: str) -> Path:
        return self._root / checked(path).lstrip("/")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        descriptor = os.open(self._root, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _entries(local: Path) -> Iterator[StoredEntry]:
    """Entries that are still there when looked at: others write and delete meanwhile."""
    for each in local.iterdir():
        with suppress(FileNotFoundError):
            yield _entry(each)


def _entry(local: Path) -> StoredEntry:
    is_directory = local.is_dir()
    status = local.stat()
    length = 0 if is_directory else status.st_size
    version = f"{status.st_ino} {status.st_mtime_ns} {status.st_ctime_ns}"
    return StoredEntry(local.name, is_directory, length, status.st_mtime_ns // 1_000_000, version)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    """Translates what the operating system says."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileMissing(path) from error
    except IsADirectoryError as error:
        raise StorageRefused(path, "it is a directory, not a file") from error
    except OSError as error:
        raise StorageRefused(path, error.strerror or type(error).__name__) from error
