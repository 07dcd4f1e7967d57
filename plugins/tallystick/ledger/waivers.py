"""Waivers: one person asks, another one approves. Every change holds the findings' rows first.

A trouble is waived, and its waiver ended, as a whole: so each change takes several findings.

Offsets that can't be read are set aside, and given up once two people have accepted that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from tallystick.ledger.findings import locked_findings, record_findings
from tallystick.ledger.texts import storable


class Waivers(Tables):
    """Who asked for a waiver, and what was accepted.

    A change raises WaiverRefused where it can't be as things stand, and EvidenceChanged where a
    finding's evidence is another one than what was read. Then nothing is changed.
    """

    def waive(self, waivers: Sequence[Waiver]) -> None:
        """Accept open findings, as their evidence was read.

        Unreadable records are given up by that: recorded as lost in the same transaction.
        """
        with self._connection.writing() as transaction:
            found = _locked(transaction, [each.finding_id for each in waivers])
            _accept(transaction, found, waivers)

    def end_waivers(self, finding_ids: Collection[int], *, by: str, reason: str) -> None:
        """End what two people accept: the findings are open again. What was given up stays lost."""
        with self._connection.writing() as transaction:
            _locked(transaction, finding_ids, FindingState.WAIVED)
            transaction.change(
                "end_waivers",
                finding_ids=list(finding_ids),
                ended_by=storable(by),
                reason=storable(reason),
            )

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

    def waiver_requests(self, finding_ids: Collection[int]) -> Mapping[int, WaiverRequest]:
        """The newest request about each of the findings, if any, whatever became of it."""
        with self._connection.reading() as transaction:
            return _requests(transaction, finding_ids)

    def waiting_requests(self) -> Mapping[str, Sequence[WaiverRequest]]:
        """By feed, the requests that can still be approved, oldest first."""
        found: dict[str, list[WaiverRequest]] = {}
        for row in self._connection.rows("waiting_requests"):
            if evidence_digest(row.evidence) == row.evidence_sha256:
                found.setdefault(row.feed, []).append(_as_request(row))
        return found

    def ask_for_waivers(self, wishes: Sequence[WaiverWish]) -> Sequence[WaiverRequest]:
        """Ask that open findings are accepted; replaces requests that are void by now."""
        with self._connection.writing() as transaction:
            by_finding = {each.finding_id: each for each in wishes}
            found = _locked(transaction, by_finding)
            entered = _columns(wishes, found)
            standing = _requests(transaction, by_finding)
            for number, each in standing.items():
                if each.may_be_approved(found[number].digest):
                    reason = f"{each.wish.asked_by} has asked already, and nobody has approved"
                    raise WaiverRefused(number, reason)
            _end(transaction, standing.values(), RequestEnding.REPLACED, wishes[0].asked_by)
            transaction.change("enter_waiver_requests", **entered)
            return list(_requests(transaction, by_finding).values())

    def approve_waivers(self, requests: Mapping[int, int], *, by: str) -> None:
        """Accept findings as these requests ask, one of each; never by who has asked."""
        with self._connection.writing() as transaction:
            found = _locked(transaction, requests)
            asked = _standing(transaction, requests)
            for each in asked:
                if is_same_person(each.wish.asked_by, by):
                    reason = f"{by} has asked, so somebody else must approve"
                    raise WaiverRefused(each.wish.finding_id, reason)
                if each.has_expired:
                    reason = "the end of the requested waiver has come"
                    raise WaiverRefused(each.wish.finding_id, reason)
            _accept(transaction, found, [each.wish.approved(by) for each in asked], requests)
            _end(transaction, asked, RequestEnding.APPROVED, by)

    def withdraw_waiver_requests(self, requests: Mapping[int, int], *, by: str) -> None:
        """End requests that nobody has approved: by who has asked, or by who declines them."""
        with self._connection.writing() as transaction:
            locked_findings(transaction, requests)
            _end(transaction, _standing(transaction, requests), RequestEnding.WITHDRAWN, by)


def give_up_accepted(transaction: Transaction, feed: FeedName) -> None:
    """Unreadable offsets whose finding is accepted are lost, and the frontiers go on.

    The feed's generations are locked by an earlier statement.
    """
    code = FindingCode.UNREADABLE_RECORD.value
    given_up = transaction.rows("give_up_accepted", feed=feed, code=code)
    if given_up:
        ids = sorted({row.generation_id for row in given_up})
        transaction.change("advance_frontiers", generation_ids=ids)


def _accept(
    transaction: Transaction,
    found: Mapping[int, StoredFinding],
    waivers: Sequence[Waiver],
    requests: Mapping[int, int] | None = None,
) -> None:
    transaction.change(
        "enter_waivers",
        approved_bys=[storable(each.approved_by) for each in waivers],
        request_ids=[(requests or {}).get(each.finding_id) for each in waivers],
        **_columns(waivers, found),
    )
    transaction.change("waive_findings", finding_ids=list(found))
    for feed in {each.finding.feed for each in found.values()}:
        give_up_accepted(transaction, FeedName(feed))


def _columns(
    asked: Sequence[Waiver | WaiverWish], found: Mapping[int, StoredFinding]
) -> dict[str, list[Any]]:
    """Raises EvidenceChanged for what has another digest than was read."""
    stored = [found[each.finding_id] for each in asked]
    for each, its in zip(asked, stored, strict=True):
        if its.digest != each.digest:
            raise EvidenceChanged(its.finding_id, each.digest, its.digest, its.finding.cause)
    return {
        "finding_ids": [each.finding_id for each in asked],
        "digests": [evidence_digest(each.finding.evidence) for each in stored],
        "reasons": [storable(each.reason) for each in asked],
        "asked_bys": [storable(each.asked_by) for each in asked],
        "ends": [each.expires_at for each in asked],
    }


def _locked(
    transaction: Transaction, numbers: Collection[int], state: FindingState = FindingState.OPEN
) -> Mapping[int, StoredFinding]:
    """The findings, held; WaiverRefused where one is in another state."""
    found = locked_findings(transaction, numbers)
    for number in sorted(numbers):
        its = found[number].state.value if number in found else "unknown"
        if its != state.value:
            raise WaiverRefused(number, f"it is {its}, not {state.value}")
    return found


def _standing(transaction: Transaction, requests: Mapping[int, int]) -> list[WaiverRequest]:
    """The requests, while nobody has ended them; WaiverRefused for any other."""
    found = _requests(transaction, requests, list(requests.values()))
    for finding_id, number in requests.items():
        asked = found.get(finding_id)
        if asked is None or asked.ending is not None:
            became = f"was {asked.ending} by {asked.ended_by}" if asked else "is not on record"
            raise WaiverRefused(finding_id, f"request {number} for a waiver {became}")
    return list(found.values())


def _end(
    transaction: Transaction, asked: Iterable[WaiverRequest], ending: RequestEnding, by: str
) -> None:
    transaction.change(
        "end_waiver_requests",
        request_ids=[each.number for each in asked],
        ending=ending.value,
        ended_by=storable(by),
    )


def _requests(
    transaction: Transaction, finding_ids: Collection[int], numbers: Sequence[int] | None = None
) -> dict[int, WaiverRequest]:
    """By finding: the newest request of each, or that of these numbers."""
    rows = transaction.rows("waiver_requests", finding_ids=list(finding_ids), request_ids=numbers)
    return {row.finding_id: _as_request(row) for row in rows}


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
