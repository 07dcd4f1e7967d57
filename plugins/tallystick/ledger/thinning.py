"""What the ledger forgets of its own accord, and when. docs/design.md says why it may.

1. Nothing goes that stands nowhere else, but what old looks and reports show between those that
   stay.
2. Nothing goes about which a finding stands, open or accepted.
"""

from __future__ import annotations

from tallystick.domain.identities import FeedName
from tallystick.domain.report.document import KEPT_FOR
from tallystick.ledger.connection import Transaction


def thin(transaction: Transaction, feed: FeedName) -> None:
    """Forget what is old; the generations are locked, so nobody else does meanwhile."""
    for each in ("forget_hashes", "thin_looks", "thin_reports"):
        transaction.change(each, feed=feed, kept=KEPT_FOR)
