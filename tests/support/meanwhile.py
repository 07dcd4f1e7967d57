"""Lets something happen right after a call of a port, as if another process had been that fast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Meanwhile:
    """Any port; after the call of that number, answered or refused, `happens` once."""

    def __init__(
        self, port: Any, happens: Callable[[], object], *, method: str | None = None, call: int = 1
    ) -> None:
        self._port, self._happens = port, happens
        self._method, self._calls_left = method, call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return self._watched(found) if self._method in (None, name) else found

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                return call(*args, **kwargs)
            finally:
                self._calls_left -= 1
                if self._calls_left == 0:
                    self._happens()

        return watched
