"""A data interval: the label that records land under. Windows are labels; offsets are the truth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.errors import ConfigurationError, WindowIncomplete


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Instants [from_instant, until_instant), aware, never empty."""

    from_instant: datetime
    until_instant: datetime

    def __post_init__(self) -> None:
        for instant in (self.from_instant, self.until_instant):
            if instant.utcoffset() != timedelta(0):
                raise ValueError(f"{instant} is not in UTC")
        if self.from_instant >= self.until_instant:
            raise ValueError(f"[{self.from_instant}, {self.until_instant}) is empty")

    @classmethod
    def between(
        cls,
        names: tuple[str, str],
        start: datetime | None,
        end: datetime | None,
        *,
        where: str = "",
    ) -> Window | None:
        """The window of these ends, by whose names errors call them; None when neither is given.

        Raises WindowIncomplete for half a window, ConfigurationError for an empty one.
        """
        if start is None and end is None:
            return None
        if start is None or end is None:
            missing = names[0] if start is None else names[1]
            accepted = "an instant, when the other end is given"
            raise WindowIncomplete(missing, None, accepted, where=where)
        if start >= end:
            accepted = f"an instant after {start.isoformat()}"
            raise ConfigurationError(names[1], end.isoformat(), accepted, where=where)
        return cls(start, end)

    def __str__(self) -> str:
        return f"[{self.from_instant.isoformat()}, {self.until_instant.isoformat()})"
