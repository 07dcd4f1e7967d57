"""Counts the effects of a story through its ports, and ends the story at the one a test names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

# What changes the world: a crash just before one, or just after, must be harmless.
EFFECTS = frozenset(
    {
        "begin_attempt",
        "renew_lease",
        "take_up",
        "record_application",
        "record_failure",
        "record_verified",
        "commit",
        "mark_published",
        "mark_swept",
        "record_findings",
        "close_findings",
        "write",
        "rename_exclusive",
        "delete",
        "delete_empty",
        "run",
    }
)


class Crash(BaseException):
    """The process is gone: nothing below may catch this and tidy up."""


@dataclass
class Countdown:
    """Ends the story before or after the n-th effect; at = None never does."""

    at: int | None = None
    after: bool = False
    seen: list[str] = field(default_factory=list)
    is_dead: bool = False

    @contextmanager
    def effect(self, name: str) -> Iterator[None]:
        """The effect happens inside the block, unless the process dies before it."""
        if self.is_dead:
            raise Crash(name)
        self.seen.append(name)
        is_mine = len(self.seen) - 1 == self.at
        if is_mine and not self.after:
            self.is_dead = True
            raise Crash(name)
        yield
        if is_mine:
            self.is_dead = True
            raise Crash(name)


class Counted:
    """Any port, with its effects counted."""

    def __init__(self, port: Any, countdown: Countdown) -> None:
        self._port, self._countdown = port, countdown

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name == "planning":
            return self._planning
        return self._counted(name, found) if name in EFFECTS else found

    def _counted(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            with self._countdown.effect(name):
                return call(*args, **kwargs)

        return counted

    @contextmanager
    def _planning(self, *args: Any) -> Iterator[Any]:
        """The effect of a plan is its transaction's end: a crash before it undoes everything."""
        if self._countdown.is_dead:
            raise Crash("planning")
        transaction: AbstractContextManager[Any] = self._port.planning(*args)
        session = transaction.__enter__()
        try:
            yield session
            if self._dies_before_planning_ends():
                raise Crash("planning")
        except BaseException as error:
            if not transaction.__exit__(type(error), error, error.__traceback__):
                raise
            return
        transaction.__exit__(None, None, None)
        if self._countdown.is_dead:
            raise Crash("planning")

    def _dies_before_planning_ends(self) -> bool:
        self._countdown.seen.append("planning")
        is_mine = len(self._countdown.seen) - 1 == self._countdown.at
        self._countdown.is_dead = is_mine
        return is_mine and not self._countdown.after
