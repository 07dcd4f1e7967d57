"""Findings into the ledger and out of it. Judges nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tallystick.domain.findings import Finding, FindingCode, Level
from tallystick.domain.identities import FeedName
from tallystick.domain.states import Verdict
from tallystick.ledger.connection import Transaction
from tallystick.ledger.rows import in_utc
from tallystick.ledger.texts import evidence_json, storable
from tallystick.ports.ledger import StoredFinding


def record_findings(transaction: Transaction, feed: FeedName, findings: Sequence[Finding]) -> None:
    """Enter findings. One with the same key seen again is confirmed.

    With another verdict the older finding is superseded and stays readable; it is never rewritten.
    """
    # The same finding twice in one call is one finding; the later wording counts.
    kept = [replace(each, subject=storable(each.subject)) for each in findings]
    found = list({each.key: each for each in kept}.values())
    if not found:
        return
    keys = {
        "codes": [each.code.value for each in found],
        "verdicts": [each.verdict.value for each in found],
        "topics": [each.topic for each in found],
        "generations": [each.generation for each in found],
        "partitions": [each.partition for each in found],
        "from_offsets": [each.from_offset for each in found],
        "until_offsets": [each.until_offset for each in found],
        "subjects": [each.subject for each in found],
    }
    transaction.change("supersede_findings", feed=feed, **keys)
    transaction.change(
        "record_findings",
        feed=feed,
        **keys,
        levels=[each.level.value for each in found],
        causes=[storable(each.cause) for each in found],
        next_steps=[storable(each.next_step) for each in found],
        evidences=[evidence_json(each.evidence) for each in found],
    )


def open_findings(transaction: Transaction, feed: FeedName) -> list[StoredFinding]:
    """The feed's open findings, oldest first."""
    return [_stored(feed, row) for row in transaction.rows("open_findings", feed=feed)]


def _stored(feed: FeedName, row: Any) -> StoredFinding:
    return StoredFinding(
        finding_id=row.finding_id,
        finding=Finding(
            code=FindingCode(row.code),
            verdict=Verdict(row.verdict),
            level=Level(row.level),
            feed=feed,
            topic=row.topic,
            generation=row.generation,
            partition=row.partition,
            from_offset=row.from_offset,
            until_offset=row.until_offset,
            cause=row.cause,
            next_step=row.next_step,
            evidence=row.evidence,
            subject=row.subject,
        ),
        first_seen_at=in_utc(row.first_seen_at),
        last_confirmed_at=in_utc(row.last_confirmed_at),
    )
