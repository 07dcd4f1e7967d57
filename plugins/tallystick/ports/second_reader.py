"""A second reader of Kafka: on another client library than Spark and than our own questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.second_read import SliceRead


class SecondReader(Protocol):
    """One cluster, read only. It joins no group, commits nothing, and chooses no offset."""

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        """What the broker serves of each slice, in the order given.

        A slice that can't be read as a whole says why: its offsets have expired, the log ends
        before it, or no answer came in time. Raises BrokerUnavailable (retry) when nothing at all
        came of any slice, SourceRefused when the cluster or the client says no.
        """
        ...
