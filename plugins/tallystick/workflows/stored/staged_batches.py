"""Finds batches in staging that may have been committed when the ledger was lost, or restored."""

from __future__ import annotations

from collections.abc import Iterable

from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.rebuilding.plan import PublishedBatch
from tallystick.workflows.services import Services
from tallystick.workflows.stored.asking_attempts import AskedAttempts
from tallystick.workflows.stored.staged_attempts import batches_in_staging, proven_manifest


def staged_batches(
    services: Services, roots: Iterable[str], asked: AskedAttempts
) -> list[PublishedBatch]:
    """The feed's proven batches in staging that the ledger has not committed, by newest proof.

    The batch may have been committed and not published when the ledger was lost, or restored:
    nobody can tell. One that somebody is at work on is left out. What can't be asked is noted with
    `asked`.
    """
    found: list[PublishedBatch] = []
    for root in sorted(set(roots)):
        ids: list[BatchId] = []
        with asked.noting_all(root):
            ids = _uncommitted(services, root)
        for batch_id in ids:
            proofs: list[tuple[Manifest, AttemptId]] = []
            for each in asked.attempts_of(root, batch_id):
                with asked.noting(each):
                    if manifest := proven_manifest(services, each):
                        proofs.append((manifest, each.attempt_id))
            if proofs:
                newest, attempt_id = max(proofs, key=lambda each: each[0].attempt.token)
                found.append(PublishedBatch.of(newest, staged_by=attempt_id))
    return found


def _uncommitted(services: Services, root: str) -> list[BatchId]:
    """Batches with a staging directory that this ledger has neither committed nor given up."""
    ids = batches_in_staging(services, root)
    if not ids:
        return []
    feed, ledger = services.feed_name, services.ledger
    over = {*ledger.committed_among(feed, ids), *ledger.batches_over(feed, ids)}
    alive = {each.plan.batch_id for each in ledger.accounts(feed).unfinished if each.is_held}
    return [each for each in ids if each not in over | alive]
