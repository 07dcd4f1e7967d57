"""Before a commit the second reader reads a sample: a difference fails the attempt (C3).

Files that were refused so are committed only after an equal comparison of the same slices.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.identities import AttemptId
from tallystick.domain.offsets.ranges import union_of
from tallystick.domain.rows.sampling import AT_COMMIT, COMMIT_TURN, sampled
from tallystick.domain.rules.c3_compared_again import (
    is_compared,
    refusals_in,
    refusals_taken_back,
    refused_before,
    slices_of,
)
from tallystick.domain.rules.c3_rows_differ import (
    also_refused,
    described,
    differing_attempt,
    is_refusal,
    place_of,
)
from tallystick.domain.rules.findings import Finding
from tallystick.errors import SourceError, StorageUnavailable, VerificationFailed
from tallystick.ports.scrubs import TakenSample
from tallystick.workflows.compared_rows import LandedRows, compared_slices, taken_sample
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitSample:
    """What a second reader has compared before a commit."""

    taken: TakenSample
    taken_back: Mapping[int, str]
    """Findings about earlier attempts at these offsets, by number, with what ends them: the same
    slices are equal now. Only the commit makes that true."""


def take_sample(
    services: Services, attempt: Attempt, manifest: Manifest, landed_by: AttemptId
) -> CommitSample | None:
    """What a second reader says of an attempt's rows; None where the feed has none.

    It compares also what it has refused of other attempts at these offsets.

    `landed_by` has landed the files. Raises VerificationFailed where a row is not what the broker
    serves, after it is on record; and for files that were refused before, unless what differed is
    compared again and is equal.
    """
    reader, plan = services.second_reader, manifest.plan
    stored = services.ledger.findings(services.feed_name)
    standing = [each.finding for each in stored]
    refused = refused_before(plan.batch_id, {attempt.attempt_id, landed_by}, standing)
    if reader is None:
        if refused:
            _refuse_again(services, attempt, refused, "the feed has no second reader")
        return None
    ranges = [each.offsets for each in plan.ranges]
    slices = union_of(
        [
            *slices_of(plan, refusals_in(plan, standing), ranges),
            *sampled(plan.batch_id, COMMIT_TURN, ranges, AT_COMMIT),
        ]
    )
    staging = StagingPath.of(plan, attempt.attempt_id)
    place = LandedRows(staging.data, manifest.files, manifest.isolation)
    taken_back: Mapping[int, str] = {}
    try:
        compared = compared_slices(services, reader, place, slices)
    except (SourceError, StorageUnavailable) as error:
        if refused:
            _refuse_again(services, attempt, refused, error.describe())
        taken = taken_sample(COMMIT_TURN, AT_COMMIT, (), error.describe())
    else:
        found = differing_attempt(plan, attempt.attempt_id, compared, standing)
        if found:
            _record_refused(services, attempt, found)
            raise VerificationFailed(plan.batch_id, described(compared))
        taken = taken_sample(COMMIT_TURN, AT_COMMIT, compared)
        if not all(is_compared(each, compared) for each in refused):
            reason = taken.not_compared or "they are no part of the batch any more"
            _refuse_again(services, attempt, refused, reason)
        equal = refusals_taken_back(standing, compared)
        taken_back = {
            each.finding_id: f"Batch {plan.batch_id} has landed it, and was compared: equal."
            for each in stored
            if is_refusal(each.finding) and place_of(each.finding) in equal
        }
    if taken.not_compared:
        log.warning(
            "Batch %s: the second reader compared %d offsets, all equal; it could not compare: %s",
            plan.batch_id,
            taken.offsets,
            taken.not_compared,
        )
    return CommitSample(taken, taken_back)


def _refuse_again(
    services: Services, attempt: Attempt, refused: Sequence[Finding], reason: str
) -> NoReturn:
    """Nothing has taken back what was seen of these files."""
    again = [also_refused(each, attempt.attempt_id) for each in refused]
    if again != list(refused):
        _record_refused(services, attempt, again)
    raise VerificationFailed(
        attempt.batch_id,
        [
            "a second reader has seen that rows in these files differ from what the broker serves"
            f" (C3), and could not compare the same offsets again: {reason}"
        ],
    )


def _record_refused(services: Services, attempt: Attempt, found: Sequence[Finding]) -> None:
    status = services.ledger.batch(attempt.batch_id)
    if not status.state.is_committed and status.newest_token == attempt.token:
        services.ledger.record_findings(services.feed_name, found)
