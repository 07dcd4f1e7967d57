"""Time as an argument: the only way a workflow learns what time it is."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The wall clock, aware and in UTC. Order and correctness never rest on it."""

    def now(self) -> datetime:
        """The instant, with a UTC offset of zero."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait this long; tests return at once."""
        ...
