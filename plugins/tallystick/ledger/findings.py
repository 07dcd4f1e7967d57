"""Findings, into the ledger and out of it, and who was told of them. Judges nothing."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import Any, cast

from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.report.news import Told
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import Waiver, WaiverEnding, evidence_digest, shortened
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import LedgerRefused
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.texts import evidence_json, storable


class Findings(Tables):
    """How findings were stated, confirmed, and ended."""

    def record_findings(self, feed: FeedName, findings: Sequence[Finding]) -> None:
        """Keep findings: one with the same key seen again is confirmed, not doubled.

        Its evidence is the newest look's from then on; all else stays as it was first stated.
        A waived one whose evidence has changed, or whose waiver has expired, is open again.
        """
        with self._connection.writing() as transaction:
            record_findings(transaction, feed, findings)

    def findings(self, feed: FeedName) -> Sequence[StoredFinding]:
        """The feed's standing findings, open or waived, oldest first."""
        with self._connection.reading() as transaction:
            return findings_of(transaction, feed=feed, only_standing=True)

    def all_findings(self, feed: FeedName) -> Sequence[StoredFinding]:
        """Every finding that the feed ever had, oldest first."""
        with self._connection.reading() as transaction:
            return findings_of(transaction, feed=feed)

    def finding(self, finding_id: int) -> StoredFinding | None:
        """One finding, whatever became of it; None if there is none of this number."""
        with self._connection.reading() as transaction:
            return read_finding(transaction, finding_id)

    def clock(self) -> datetime:
        """The ledger's clock now, by which findings are confirmed."""
        return cast(datetime, self._connection.one("clock").instant)

    def close_findings(
        self,
        feed: FeedName,
        closed: Mapping[int, str],
        *,
        run: Owner | None = None,
        as_found: Sequence[StoredFinding] = (),
    ) -> int:
        """End findings: by number, what closed each. How many; ended ones stay as they are.

        `run` does it; None is somebody by hand.

        So do those that are not `as_found` any more, for somebody has confirmed them since. That is
        told by equal instants, not by their order: a ledger's clock may go back.
        """
        if not closed:
            return 0
        found_at = {each.finding_id: each.last_confirmed_at for each in as_found}
        return self._connection.change(
            "close_findings",
            feed=feed,
            run=run,
            finding_ids=list(closed),
            reasons=[storable(each) for each in closed.values()],
            confirmed_ats=[found_at.get(each) for each in closed],
        )


class Telling:
    """One recipient's turn: nobody else tells them anything meanwhile.

    A turn that dies leaves everything as it was.
    """

    def __init__(self, transaction: Transaction, feed: FeedName, recipient: str) -> None:
        self._transaction, self._feed, self._recipient = transaction, feed, recipient
        transaction.change("enter_recipient", feed=feed, recipient=recipient)
        row = transaction.one("lock_recipient", feed=feed, recipient=recipient)
        self.told = from_plain(Told, row.known) if row.known else None
        """What they were told last; None before the first time."""

    def keep(self, told: Told) -> None:
        """Remember it once the turn ends well."""
        self._transaction.change(
            "keep_told",
            feed=self._feed,
            recipient=self._recipient,
            known=json.dumps(to_plain(told)),
        )
        self.told = told


class News(Tables):
    """What recipients of alerts were told."""

    @contextmanager
    def telling(self, feed: FeedName, recipient: str) -> Iterator[Telling]:
        """The recipient's turn; waits for another one to end. The ledger is not asked inside it."""
        with self._connection.writing() as transaction:
            yield Telling(transaction, feed, recipient)

    def ended_findings(
        self, feed: FeedName, numbers: Collection[int], after: int
    ) -> Mapping[int, StoredFinding]:
        """Those of these numbers, and of larger ones than `after`, that do not stand open."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("ended_since", feed=feed, numbers=sorted(numbers), after=after)
            found = [read_finding(transaction, row.finding_id) for row in rows]
        return {each.finding_id: each for each in found if each}

    def newest_finding(self, feed: FeedName) -> int:
        """The largest number that a finding of the feed has; 0 where it never had one."""
        return int(self._connection.one("newest_finding", feed=feed).newest)


def record_findings(transaction: Transaction, feed: FeedName, findings: Sequence[Finding]) -> None:
    """Enter findings. One with the same key seen again is confirmed.

    With another verdict the older finding is superseded and stays readable. A confirmed one has the
    evidence and the words of the newest look: that is what a waiver accepts. All else is never
    rewritten: a state that lasts keeps the end that the first look saw.
    """
    # The same finding twice in one call is one finding; the later wording counts.
    kept = [replace(each, subject=storable(each.subject)) for each in findings]
    found = list({each.key: each for each in kept}.values())
    if not found:
        return
    keys = [_key(each) for each in found]
    verdicts = [each.verdict.value for each in found]
    transaction.rows("lock_told_findings", feed=feed, keys=keys)
    transaction.change("supersede_findings", feed=feed, keys=keys, verdicts=verdicts)
    told = {
        "causes": [storable(each.cause) for each in found],
        "next_steps": [storable(each.next_step) for each in found],
        "evidences": [evidence_json(each.evidence) for each in found],
    }
    confirmed = transaction.change("confirm_findings", feed=feed, keys=keys, **told)
    if confirmed < len(found):
        transaction.change(
            "record_findings",
            feed=feed,
            keys=keys,
            codes=[each.code.value for each in found],
            names=[each.name for each in found],
            verdicts=verdicts,
            levels=[each.level.value for each in found],
            topics=[each.topic for each in found],
            generations=[each.generation for each in found],
            partitions=[each.partition for each in found],
            from_offsets=[each.from_offset for each in found],
            until_offsets=[each.until_offset for each in found],
            subjects=[each.subject for each in found],
            **told,
        )
    transaction.change(
        "void_waivers",
        feed=feed,
        keys=keys,
        verdicts=verdicts,
        digests=[_digest(each) for each in told["evidences"]],
    )


def _key(found: Finding) -> bytes:
    """A path may be longer than an index entry, so a hash stands for all that the key is of."""
    return sha256(json.dumps(found.key).encode()).digest()


def _digest(evidence: str) -> bytes:
    return evidence_digest(json.loads(evidence))


def read_finding(transaction: Transaction, finding_id: int) -> StoredFinding | None:
    """One finding; None if there is none of this number."""
    return next(iter(findings_of(transaction, numbers=[finding_id])), None)


def findings_of(
    transaction: Transaction,
    *,
    feed: FeedName | None = None,
    numbers: Collection[int] | None = None,
    only_standing: bool = False,
) -> list[StoredFinding]:
    """Findings of a feed, or of these numbers; oldest first."""
    rows = transaction.rows(
        "findings",
        feed=feed,
        finding_ids=None if numbers is None else list(numbers),
        only_standing=only_standing,
    )
    return [_stored(row) for row in rows]


def locked_findings(
    transaction: Transaction, numbers: Collection[int]
) -> Mapping[int, StoredFinding]:
    """Those of these numbers as they stand, their rows held until the transaction ends."""
    # Everybody locks in this order: generations before findings.
    for feed in sorted({each.finding.feed for each in findings_of(transaction, numbers=numbers)}):
        transaction.rows("lock_living_generations", feed=feed)
    transaction.rows("lock_findings", finding_ids=list(numbers))
    return {each.finding_id: each for each in findings_of(transaction, numbers=numbers)}


def _stored(row: Any) -> StoredFinding:
    return StoredFinding(
        finding_id=row.finding_id,
        finding=_finding(row),
        first_seen_at=row.first_seen_at,
        last_confirmed_at=row.last_confirmed_at,
        state=FindingState(row.state),
        closed_at=row.closed_at,
        closed_by=row.closed_by,
        closed_in=row.closed_in,
        waiver=_waiver(row),
        has_waiver_expired=bool(row.has_expired),
        waiver_ending=(
            WaiverEnding(row.ended_because, row.ended_by, row.ended_at) if row.ended_by else None
        ),
    )


def _finding(row: Any) -> Finding:
    try:
        return Finding(
            rule=RULE_OF[FindingCode(row.code)],
            verdict=Verdict(row.verdict),
            level=Level(row.level),
            feed=row.feed,
            topic=row.topic,
            generation=row.generation,
            partition=row.partition,
            from_offset=row.from_offset,
            until_offset=row.until_offset,
            cause=row.cause,
            next_step=row.next_step,
            evidence=row.evidence,
            subject=row.subject,
            name=row.name,
        )
    except ValueError as error:
        reason = f"finding {row.finding_id} is none that this version can make: {error}"
        raise LedgerRefused("findings", reason) from error


def _waiver(row: Any) -> Waiver | None:
    if row.expires_at is None:
        return None
    return Waiver(
        finding_id=row.finding_id,
        reason=row.reason,
        asked_by=row.asked_by,
        approved_by=row.approved_by,
        expires_at=row.expires_at,
        digest=shortened(row.evidence_sha256),
    )
