"""A data interval: the label that records land under. Windows are labels; offsets are the truth."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta


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

    def __str__(self) -> str:
        return f"[{self.from_instant.isoformat()}, {self.until_instant.isoformat()})"
