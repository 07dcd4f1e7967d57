"""Counts the effects of a story through its ports, and ends the story at the one a test names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# What changes the world: a crash just before one, or just after, must be harmless.
EFFECTS = frozenset(
    {
        "planning", "begin_attempt", "renew_lease", "record_application", "record_failure",
        "record_verified", "commit", "mark_published", "mark_swept", "record_findings",
        "write", "rename_exclusive", "delete", "delete_empty", "run",
    }
)


class Crash(BaseException):
    """The process is gone: nothing below may catch this and tidy up."""


@dataclass
class Countdown:
    """Ends the story before or after the n-th effect; n = None never does."""

    at: int | None = None
    after: bool = False
    seen: list[str] = field(default_factory=list)
    is_dead: bool = False

    def around(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self.is_dead:
                raise Crash(name)
            self.seen.append(name)
            mine = len(self.seen) - 1 == self.at
            if mine and not self.after:
                self.is_dead = True
                raise Crash(name)
            answer = call(*args, **kwargs)
            if mine:
                self.is_dead = True
                raise Crash(name)
            return answer

        return counted


class Counted:
    """Any port, with its effects counted."""

    def __init__(self, port: Any, countdown: Countdown) -> None:
        self._port, self._countdown = port, countdown

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._countdown.around(name, found) if name in EFFECTS else found
