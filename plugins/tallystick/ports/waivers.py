"""What the ledger keeps of requests for waivers: one person asks, and another one approves."""

from __future__ import annotations

from typing import Protocol

from tallystick.domain.rules.waivers import WaiverRequest, WaiverWish


class WaiversRecord(Protocol):
    """The part of the ledger that remembers who asked for a waiver; raises what `Ledger` raises.

    Each change raises WaiverRefused where it can't be as things stand, and EvidenceChanged where
    the finding's evidence is another one than what was read. Then nothing is changed.
    """

    def waiver_request(self, finding_id: int) -> WaiverRequest | None:
        """The newest request about the finding, whatever became of it; None where nobody asked."""
        ...

    def ask_for_waiver(self, wish: WaiverWish) -> WaiverRequest:
        """Ask that an open finding is accepted; replaces a request that is void by now."""
        ...

    def approve_waiver(self, request: int, *, finding_id: int, by: str) -> None:
        """Accept the finding as that request asks, in one transaction; never by who has asked."""
        ...

    def withdraw_waiver_request(self, request: int, *, finding_id: int, by: str) -> None:
        """End a request that nobody has approved: by who has asked, or by who declines it."""
        ...
