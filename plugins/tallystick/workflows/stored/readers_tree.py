"""Lists directories, many at a time: those that readers step into, or all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from tallystick.domain.batches.stored_file import UnknownFile
from tallystick.errors import FileMissing, StorageRefused
from tallystick.ports.file_store import StoredEntry
from tallystick.ports.progress import Progress
from tallystick.workflows.services import Services
from tallystick.workflows.stored.other_feeds import is_below

T = TypeVar("T")
R = TypeVar("R")

# A NameNode answers each in a millisecond or so; these overlap the waiting, and no more.
_ASKING_AT_ONCE: Final = 8


@dataclass(slots=True)
class Tree:
    """Directories as they were listed."""

    entries: dict[str, Sequence[StoredEntry]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Directories that could not be listed, each with the reason."""
    shown: dict[str, StoredEntry] = field(default_factory=dict)
    """Each directory's own entry, as its parent's listing showed it before it was listed."""
    passed: set[str] = field(default_factory=set)
    """Directories that were not listed, for they are as they were."""

    def hides(self, directory: str) -> bool:
        """True for what lies in, or below, a directory that could not be listed."""
        return is_below(directory, self.refused)


@contextmanager
def asking() -> Iterator[ThreadPoolExecutor]:
    """Threads for questions to the file system."""
    with ThreadPoolExecutor(_ASKING_AT_ONCE, thread_name_prefix="storage-check") as pool:
        yield pool


def ask_all(
    pool: ThreadPoolExecutor,
    ask: Callable[[T], R],
    of: Sequence[T],
    told: Callable[[Sequence[Future[R]]], Iterable[Future[R]]] = iter,
) -> list[R]:
    """The answers in order, as `told` passes them on; the first error ends the asking."""
    asked = [pool.submit(ask, each) for each in of]
    try:
        return [each.result() for each in told(asked)]
    except BaseException:
        for each in asked:
            each.cancel()
        raise


def _none(_directory: str, _entry: StoredEntry) -> bool:
    return False


def listed_tree(
    services: Services,
    tops: Sequence[str],
    pool: ThreadPoolExecutor,
    is_as_shown: Callable[[str, StoredEntry], bool] = _none,
    *,
    hidden: bool = False,
) -> Tree:
    """Every directory at or below `tops` that Spark and Hive would step into, but for those that
    are as their own entries have shown them before; the `hidden` ones, too, where asked for.
    """
    tree, waiting = Tree(), list(tops)

    def entries_of(directory: str) -> Sequence[StoredEntry] | str | None:
        try:
            return services.store.entries(directory)
        except FileMissing:
            return None
        except StorageRefused as error:
            return error.sentence()

    while waiting:
        services.progress(Progress("list directories", len(tree.entries), unit="directories"))
        answers = ask_all(pool, entries_of, waiting)
        listed = dict(zip(waiting, answers, strict=True))
        waiting = []
        for directory, answer in listed.items():
            if isinstance(answer, str):
                tree.refused[directory] = answer
            elif answer is not None:
                tree.entries[directory] = answer
                below = {
                    f"{directory}/{each.name}": each
                    for each in answer
                    if each.is_directory and (each.is_read or hidden)
                }
                tree.shown |= below
                passed = {path for path, each in below.items() if is_as_shown(path, each)}
                tree.passed |= passed
                waiting += below.keys() - passed
    return tree


def listed_files(entries: Iterable[StoredEntry]) -> list[UnknownFile]:
    """The files of a directory, hidden ones too: what lies there as it was listed."""
    return [
        UnknownFile(each.name, each.length_bytes, each.changed_ms)
        for each in entries
        if not each.is_directory
    ]
