"""A file store that does not hand out what lies at a path, as long as a test wants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tallystick.errors import StorageUnavailable
from tallystick.workflows.services import Services
from tests.support.story import Story

READS: Final = frozenset(
    {"read", "checksum", "read_back", "read_back_file", "read_range", "landed_record_hash"}
)
"""What needs the blocks of a file."""
LISTS: Final = READS | {"entries"}
"""What needs a right on a directory, too."""


class UnreadableStore:
    """Refuses these questions about every path with this part in it, or that ends with it."""

    def __init__(
        self, store: Any, part: str, questions: frozenset[str], *, is_end: bool = False
    ) -> None:
        self._store, self._part, self._questions = store, part, questions
        self._is_end = is_end

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        return partial(self._refused, found) if name in self._questions else found

    def _refused(self, ask: Callable[..., Any], path: str, *more: Any, **named: Any) -> Any:
        if path.endswith(self._part) if self._is_end else self._part in path:
            raise StorageUnavailable(path, "Could not obtain block")
        return ask(path, *more, **named)


def unreadable(
    story: Story, part: str, questions: frozenset[str] = READS, *, is_end: bool = False
) -> Services:
    """Services to which the storage does not answer about such paths."""
    services = story.services()
    return replace(services, store=UnreadableStore(services.store, part, questions, is_end=is_end))
