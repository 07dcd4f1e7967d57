"""Finds batches in staging that may have been committed when the ledger was lost, or restored."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import STAGING_NAME
from tallystick.domain.identities import ID_PATTERN, AttemptId, BatchId
from tallystick.domain.repair.rebuilding import PublishedBatch
from tallystick.errors import FileMissing
from tallystick.workflows.services import Services
from tallystick.workflows.stored.staged_attempts import attempts_in, proven_manifest
from tallystick.workflows.stored.unanswered import Unanswered


def staged_batches(
    services: Services, roots: Iterable[str], unanswered: Unanswered | None = None
) -> list[PublishedBatch]:
    """The feed's proven batches in staging that the ledger has not committed, by newest proof.

    The batch may have been committed and not published when the ledger was lost, or restored:
    nobody can tell. One that somebody is at work on is left out. What can't be asked is noted with
    `unanswered`, and raised without it.
    """
    found: list[PublishedBatch] = []
    for root in sorted(set(roots)):
        ids: list[BatchId] = []
        with unanswered.noting_all(root) if unanswered else nullcontext():
            ids = _uncommitted(services, root)
        for batch_id in ids:
            proofs = _proofs(services, root, batch_id, unanswered)
            if proofs:
                newest, attempt_id = max(proofs, key=lambda each: each[0].attempt.token)
                found.append(PublishedBatch.of(newest, staged_by=attempt_id))
    return found


def _proofs(
    services: Services, root: str, batch_id: BatchId, unanswered: Unanswered | None
) -> list[tuple[Manifest, AttemptId]]:
    if unanswered is None:
        attempts = attempts_in(services, root, batch_id)
    else:
        attempts = unanswered.attempts_of(root, batch_id)
    found: list[tuple[Manifest, AttemptId]] = []
    for each in attempts:
        with unanswered.noting(each) if unanswered else nullcontext():
            if manifest := proven_manifest(services, each):
                found.append((manifest, each.attempt_id))
    return found


def _uncommitted(services: Services, root: str) -> list[BatchId]:
    """Batches with a staging directory that this ledger has neither committed nor given up."""
    try:
        entries = services.store.entries(f"{root}/{STAGING_NAME}")
    except FileMissing:
        return []
    ids = [BatchId(each.name) for each in entries if ID_PATTERN.fullmatch(each.name)]
    if not ids:
        return []
    feed, ledger = services.feed_name, services.ledger
    over = {*ledger.committed_among(feed, ids), *ledger.batches_over(feed, ids)}
    alive = {
        each.plan.batch_id
        for each in ledger.accounts(feed).unfinished
        if each.lease_seconds_left > 0
    }
    return [each for each in ids if each not in over | alive]
