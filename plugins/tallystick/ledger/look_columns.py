"""What a look at the broker showed: one column for each kind of offset, compressed JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import LedgerRefused
from tallystick.ledger.texts import compressed, decompressed

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Shown:
    """Offsets by partition: one element for each of `partitions`, which ascend."""

    partitions: Sequence[int]
    high_watermarks: Sequence[int]
    last_stable_offsets: Sequence[int]
    log_start_offsets: Sequence[int]
    leader_epochs: Sequence[int | None]
    """None where the broker knows none."""
    leaderless: Sequence[int]
    """Partitions that could not be asked."""
    borders: Sequence[int | None]
    """Where the window ended that the look asked for, None where that is not known; empty where it
    asked for none."""

    @classmethod
    def in_snapshot(cls, snapshot: BrokerSnapshot) -> Shown:
        """What the snapshot says of each partition."""
        known = snapshot.partitions
        partitions = sorted(known)
        bounds = [known[each] for each in partitions]
        return cls(
            partitions,
            [each.high_watermark for each in bounds],
            [each.last_stable_offset for each in bounds],
            [each.log_start_offset for each in bounds],
            [each.leader_epoch for each in bounds],
            sorted(snapshot.unheard),
            [snapshot.border.ends.get(each) for each in partitions] if snapshot.border else [],
        )

    @classmethod
    def of(cls, data: bytes) -> Shown:
        """What a row has kept; raises LedgerRefused when it can't be read."""
        try:
            shown = cls(**json.loads(decompressed(data)))
            shown.by_partition(shown.leader_epochs)
            shown.by_partition(shown.borders or shown.partitions)
        except (ValueError, TypeError) as error:
            raise LedgerRefused("looks", f"a look can't be read: {error}") from error
        return shown

    def compressed(self) -> bytes:
        """The columns by their names, as an export has them."""
        columns = {each.name: list(getattr(self, each.name)) for each in fields(self)}
        return compressed(json.dumps(columns, separators=(",", ":")))

    @property
    def due_ends(self) -> Sequence[int]:
        """Up to where each log is due (excluded): to its window's end, where that is known."""
        if not self.borders:
            return self.high_watermarks
        both = zip(self.borders, self.high_watermarks, strict=True)
        return [end if border is None else min(border, end) for border, end in both]

    def by_partition(self, column: Sequence[_T]) -> Mapping[int, _T]:
        """One of the columns by partition."""
        return dict(zip(self.partitions, column, strict=True))
