"""A file under a readers' path that no committed batch owns, and what it holds.

1. A stray doubles only rows whose committed file is in its place, as it was committed.
2. Rows that no such file holds may be nowhere else: the stray is moved on a person's word only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.offsets.runs import OffsetRuns

_GENERATION: Final = re.compile(r"/gen=(\d+)/")


def generation_in(path: str) -> int | None:
    """The ordinal of the generation whose directory a path lies in; None outside of all."""
    match = _GENERATION.search(f"{path}/")
    return int(match[1]) if match else None


@dataclass(frozen=True, slots=True)
class StrayFile:
    """A stray, and what it holds."""

    path: str
    held: Mapping[int, OffsetRuns] | None
    """Its offsets by partition; None where nobody can read what may be rows."""
    committed: Mapping[int, OffsetRuns] = field(default_factory=dict)
    """Which of them the ledger has as committed, whatever became of their files."""
    kept: Mapping[int, OffsetRuns] = field(default_factory=dict)
    """Which of them a committed file holds too, that is in its place as it was committed."""
    trouble: str | None = None
    """Why nobody could tell what it holds, or if a committed file holds that too."""
    length_bytes: int = 0
    changed_ms: int = 0
    """When it was written last, by the file system's clock: whoever writes it anew moves it."""

    @property
    def generation(self) -> int | None:
        """The generation in whose directory it lies."""
        return generation_in(self.path)

    @property
    def sole(self) -> dict[int, OffsetRuns]:
        """The offsets that no committed file holds, by partition."""
        return self._without(self.kept)

    @property
    def is_news_to_ledger(self) -> bool:
        """True when it may hold rows that the ledger would land, or call lost."""
        return self.held is None or bool(self._without(self.committed))

    @property
    def may_be_only_copy(self) -> bool:
        """True for what is moved by its finding's number only."""
        return self.held is None or bool(self.sole)

    @property
    def words(self) -> str:
        """Why it may be the only copy; empty when it can't be."""
        if self.trouble is not None:
            return f"Nobody can tell if committed files hold its rows: {self.trouble}"
        if self.held is None:
            return "It begins as a Parquet file, and what it holds can't be read."
        if not self.sole:
            return ""
        told = (f"{each.described()} of partition {number}" for number, each in self.sole.items())
        return f"No committed file holds these rows of it: {'; '.join(told)}."

    def _without(self, known: Mapping[int, OffsetRuns]) -> dict[int, OffsetRuns]:
        found = {
            partition: offsets.difference(known.get(partition, OffsetRuns()))
            for partition, offsets in sorted((self.held or {}).items())
        }
        return {partition: offsets for partition, offsets in found.items() if offsets}
