"""What a look at the broker showed, in few bytes: one column for each kind of offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import LedgerRefused
from tallystick.ledger.packed_json import packed_columns, unpacked_columns

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

    @classmethod
    def in_snapshot(cls, snapshot: BrokerSnapshot) -> Shown:
        """What the snapshot says of each partition, those at rest among them."""
        known = snapshot.all_partitions
        partitions = sorted(known)
        bounds = [known[each] for each in partitions]
        return cls(
            partitions,
            [each.high_watermark for each in bounds],
            [each.last_stable_offset for each in bounds],
            [each.log_start_offset for each in bounds],
            [each.leader_epoch for each in bounds],
            sorted(snapshot.unheard),
        )

    @classmethod
    def of(cls, packed: bytes) -> Shown:
        """What a row has packed; raises LedgerRefused when it can't be read."""
        try:
            partitions, highs, stables, starts, epochs, leaderless = unpacked_columns(packed)
            known = [each - 1 if each else None for each in epochs]
            shown = cls(partitions, highs, stables, starts, known, leaderless)
            shown.by_partition(shown.leader_epochs)
        except ValueError as error:
            raise LedgerRefused("looks", f"a look can't be read: {error}") from error
        return shown

    def packed(self) -> bytes:
        """The columns in few bytes."""
        epochs = [0 if each is None else each + 1 for each in self.leader_epochs]
        return packed_columns(
            (
                self.partitions,
                self.high_watermarks,
                self.last_stable_offsets,
                self.log_start_offsets,
                epochs,
                self.leaderless,
            )
        )

    def by_partition(self, column: Sequence[_T]) -> Mapping[int, _T]:
        """One of the columns by partition."""
        return dict(zip(self.partitions, column, strict=True))
