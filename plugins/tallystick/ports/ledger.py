"""What is asked of the ledger. Every promise here is proven by tests/contract/test_ledger_*.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tallystick.domain.identities import FeedName
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.ports.attempts import AttemptsRecord
from tallystick.ports.batches import BatchesRecord
from tallystick.ports.evidence import EvidenceRecord
from tallystick.ports.findings import FindingsRecord
from tallystick.ports.metrics import MetricsRecord
from tallystick.ports.news import NewsRecord
from tallystick.ports.overview import OverviewRecord
from tallystick.ports.planning import PlanningRecord
from tallystick.ports.proofs import ProofsRecord
from tallystick.ports.reports import ReportsRecord
from tallystick.ports.scrubs import ScrubsRecord
from tallystick.ports.waivers import WaiversRecord


class Ledger(
    PlanningRecord,
    AttemptsRecord,
    BatchesRecord,
    EvidenceRecord,
    FindingsRecord,
    MetricsRecord,
    NewsRecord,
    OverviewRecord,
    ProofsRecord,
    ReportsRecord,
    ScrubsRecord,
    WaiversRecord,
    Protocol,
):
    """The record of what was claimed, committed and lost.

    Every method raises LedgerUnavailable (retry), SchemaOutOfDate, or LedgerRefused. Leases are
    read by the database's clock, and nothing but adoption depends on them.
    """

    def lost(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, OffsetRange, str]]:
        """Ranges recorded as lost, with generation and finding code, by partition and offset."""
        ...

    def generations(self, feed: FeedName) -> Mapping[int, Sequence[GenerationAccount]]:
        """All generations by partition, oldest first."""
        ...

    def fold(self, feed: FeedName) -> int:
        """How many ranges now stand for several: contiguous, published, below their frontier.

        Offsets, counts and proofs stay as they are; the history only takes fewer rows. Then a part
        of the holes of old batches is folded, too.
        """
        ...

    def close(self) -> None:
        """Give the connection back; the ledger opens another one when it is used again."""
        ...
