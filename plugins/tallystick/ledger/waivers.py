"""Waivers: one person asks, another one approves. Every change holds the finding's row first.

Offsets that can't be read are set aside, and given up once two people have accepted that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.identities import FeedName
from tallystick.domain.planning.log_changes import CutClaim
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import (
    RequestEnding,
    Waiver,
    WaiverRequest,
    WaiverWish,
    evidence_digest,
    is_same_person,
    shortened,
)
from tallystick.domain.verdicts import FindingState
from tallystick.errors import EvidenceChanged, WaiverRefused
from tallystick.ledger.attempts import locked_batch, require_newest
from tallystick.ledger.change_rows import cut_claims
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.findings import locked_finding, record_findings, waive
from tallystick.ledger.texts import storable


class Waivers(Tables):
    """Who asked for a waiver, and what was accepted.

    What is requested raises WaiverRefused where it can't be as things stand, and EvidenceChanged
    where the finding's evidence is another one than what was read. Then nothing is changed.
    """

    def waive(self, waiver: Waiver) -> None:
        """Accept an open finding. Raises LedgerRefused for one that is not open, and
        EvidenceChanged for one whose evidence has another digest by now than the waiver.

        An unreadable record is given up by that: recorded as lost in the same transaction.
        """
        with self._connection.writing() as transaction:
            give_up_accepted(transaction, waive(transaction, waiver))

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

    def waiver_request(self, finding_id: int) -> WaiverRequest | None:
        """The newest request about the finding, whatever became of it; None where nobody asked."""
        with self._connection.reading() as transaction:
            return _request(transaction, finding_id=finding_id)

    def waiting_requests(self) -> Mapping[str, Sequence[WaiverRequest]]:
        """By feed, the requests that can still be approved, oldest first."""
        found: dict[str, list[WaiverRequest]] = {}
        for row in self._connection.rows("waiting_requests"):
            if evidence_digest(row.evidence) == row.evidence_sha256:
                found.setdefault(row.feed, []).append(_as_request(row))
        return found

    def ask_for_waiver(self, wish: WaiverWish) -> WaiverRequest:
        """Ask that an open finding is accepted; replaces a request that is void by now."""
        with self._connection.writing() as transaction:
            stored = _open_finding(transaction, wish.finding_id, wish.digest)
            standing = _request(transaction, finding_id=wish.finding_id)
            if standing and standing.ending is None:
                if standing.may_be_approved(stored.digest):
                    reason = f"{standing.wish.asked_by} has asked already, and nobody has approved"
                    raise WaiverRefused(wish.finding_id, reason)
                _end(transaction, standing, RequestEnding.REPLACED, wish.asked_by)
            row = transaction.one(
                "enter_waiver_request",
                finding_id=wish.finding_id,
                digest=evidence_digest(stored.finding.evidence),
                reason=storable(wish.reason),
                asked_by=storable(wish.asked_by),
                expires_at=wish.expires_at,
            )
            return _standing(transaction, row.request_id, wish.finding_id)

    def approve_waiver(self, request: int, *, finding_id: int, by: str) -> None:
        """Accept the finding as that request asks, in one transaction; never by who has asked."""
        with self._connection.writing() as transaction:
            stored = _open_finding(transaction, finding_id)
            asked = _standing(transaction, request, finding_id)
            if is_same_person(asked.wish.asked_by, by):
                raise WaiverRefused(finding_id, f"{by} has asked, so somebody else must approve")
            if asked.has_expired:
                raise WaiverRefused(finding_id, "the end of the requested waiver has come")
            _require_as_read(stored, asked.wish.digest)
            feed = waive(transaction, asked.wish.approved(by), asked.number)
            _end(transaction, asked, RequestEnding.APPROVED, by)
            give_up_accepted(transaction, feed)

    def withdraw_waiver_request(self, request: int, *, finding_id: int, by: str) -> None:
        """End a request that nobody has approved: by who has asked, or by who declines it."""
        with self._connection.writing() as transaction:
            locked_finding(transaction, finding_id)
            asked = _standing(transaction, request, finding_id)
            _end(transaction, asked, RequestEnding.WITHDRAWN, by)


def give_up_accepted(transaction: Transaction, feed: FeedName) -> None:
    """Unreadable offsets whose finding is accepted are lost, and the frontiers go on.

    The feed's generations are locked by an earlier statement.
    """
    code = FindingCode.UNREADABLE_RECORD.value
    given_up = transaction.rows("give_up_accepted", feed=feed, code=code)
    if given_up:
        ids = sorted({row.generation_id for row in given_up})
        transaction.change("advance_frontiers", generation_ids=ids)


def _open_finding(
    transaction: Transaction, number: int, digest: str | None = None
) -> StoredFinding:
    stored = locked_finding(transaction, number)
    if stored is None or stored.state is not FindingState.OPEN:
        raise WaiverRefused(
            number, f"it is {stored.state.value if stored else 'unknown'}, not open"
        )
    if digest is not None:
        _require_as_read(stored, digest)
    return stored


def _require_as_read(stored: StoredFinding, digest: str) -> None:
    if stored.digest != digest:
        raise EvidenceChanged(stored.finding_id, digest, stored.digest, stored.finding.cause)


def _standing(transaction: Transaction, number: int, finding_id: int) -> WaiverRequest:
    """The request, while nobody has ended it; WaiverRefused for any other."""
    found = _request(transaction, finding_id=finding_id, request_id=number)
    if found is None or found.ending is not None:
        became = f"was {found.ending} by {found.ended_by}" if found else "is not on record"
        raise WaiverRefused(finding_id, f"request {number} for a waiver {became}")
    return found


def _end(transaction: Transaction, asked: WaiverRequest, ending: RequestEnding, by: str) -> None:
    transaction.change(
        "end_waiver_request", request_id=asked.number, ending=ending.value, ended_by=storable(by)
    )


def _request(
    transaction: Transaction, *, finding_id: int, request_id: int | None = None
) -> WaiverRequest | None:
    row = transaction.row("waiver_request", finding_id=finding_id, request_id=request_id)
    return _as_request(row) if row else None


def _as_request(row: Any) -> WaiverRequest:
    return WaiverRequest(
        number=row.request_id,
        wish=WaiverWish(
            finding_id=row.finding_id,
            reason=row.reason,
            asked_by=row.asked_by,
            expires_at=row.expires_at,
            digest=shortened(row.evidence_sha256),
        ),
        asked_at=row.asked_at,
        has_expired=bool(row.has_expired),
        ending=RequestEnding(row.ending) if row.ending else None,
        ended_by=row.ended_by,
        ended_at=row.ended_at,
    )
