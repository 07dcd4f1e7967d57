"""Offsets that can't be read are set aside, and given up once two people have accepted that."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.identities import FeedName
from tallystick.domain.planning.log_changes import CutClaim
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.ledger.attempts import locked_batch, require_newest
from tallystick.ledger.change_rows import cut_claims
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.findings import record_findings


class SettingAside(Tables):
    """Claims that an attempt can't read."""

    def set_aside(
        self, attempt: Attempt, cuts: Sequence[CutClaim], findings: Sequence[Finding]
    ) -> None:
        """Cut the claims of the attempt's batch, and keep the findings that say why, at once.

        A batch without a claim is abandoned. Unreadable offsets whose finding two people have
        accepted already are lost. Raises AttemptFenced.
        """
        with self._connection.writing() as transaction:
            batch = locked_batch(transaction, attempt.batch_id)
            require_newest(transaction, attempt, batch)
            feed = FeedName(batch.feed)
            transaction.rows("lock_living_generations", feed=feed)
            cut_claims(transaction, cuts, [attempt.batch_id])
            transaction.change("abandon_empty_batches", batch_ids=[attempt.batch_id])
            record_findings(transaction, feed, findings)
            give_up_accepted(transaction, feed)


def give_up_accepted(transaction: Transaction, feed: FeedName) -> None:
    """Unreadable offsets whose finding is accepted are lost, and the frontiers go on.

    The feed's generations are locked by an earlier statement.
    """
    code = FindingCode.UNREADABLE_RECORD.value
    given_up = transaction.rows("give_up_accepted", feed=feed, code=code)
    if given_up:
        ids = sorted({row.generation_id for row in given_up})
        transaction.change("advance_frontiers", generation_ids=ids)
