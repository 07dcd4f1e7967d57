"""Search: find the single offsets that Spark can't read, so that all others can be landed.

A search that finds none, or can't be carried out, changes nothing: the landing has failed for
another reason, and the next attempt starts anew.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

from tallystick.domain.attempts.last_copies import KeptFiles, places_for
from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.paths import PLAN_NAME, RESULT_NAME, StagingPath
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.planning.failing_batches import (
    is_search_due,
    set_aside,
)
from tallystick.domain.planning.unreadable import (
    MOST_DEATHS,
    ReadNote,
    SearchPlan,
    SearchResult,
    death,
    known_after,
)
from tallystick.domain.rules.a11_unreadable_record import unreadable_record
from tallystick.errors import (
    AnotherCluster,
    ApplicationFailed,
    ApplicationOverdue,
    ManifestMismatch,
    RecordsUnreadable,
    SourceChanged,
    SourceError,
    SparkError,
    StorageError,
    TopicUnknown,
)
from tallystick.ports.progress import Progress
from tallystick.ports.spark_runner import LandingOrder
from tallystick.workflows.landing.application_result import result_text
from tallystick.workflows.landing.watching import topic_watched
from tallystick.workflows.services import Services
from tallystick.workflows.settling.claiming_again import may_be_committed
from tallystick.workflows.stored.staged_attempts import quarantined_at
from tallystick.workflows.stored.staging import staged

log = logging.getLogger(__name__)

_SEARCH: Final = "search for unreadable records"


def set_unreadable_aside(services: Services, attempt: Attempt, before: BatchStatus) -> bool:
    """Return when no record is to blame for the failed landing, or it is too early to ask; False
    where Spark can read nothing at all, so that the batch is not to blame either.

    Nothing is set aside of a batch that has begun to expire, or that can be committed from what
    attempts hold: the next run settles that first.

    `before` is the batch as it stood before this attempt. Raises AttemptNotAsked while a directory
    that may hold the record can't be read; RecordsUnreadable once the offsets are set aside: then
    the batch is over, and all its other offsets are due again.
    """
    if not is_search_due(before):
        return True
    try:
        with _probes_deleted(services, StagingPath.of(before.plan, attempt.attempt_id)):
            result = _searched(services, attempt)
        snapshot = services.broker.snapshot(services.topic)
    except (TopicUnknown, AnotherCluster, SourceChanged):
        raise
    except (SparkError, SourceError, StorageError) as error:
        log.warning("Unreadable offsets could not be looked for: %s", error)
        return True
    if not result.unreadable:
        log.info("No offset is unreadable by itself, by %d reads.", result.probes)
        return not result.reads_nothing
    status = services.ledger.batch(attempt.batch_id)
    plan = status.plan
    if _has_expired(plan, snapshot):
        log.warning("Batch %s: the log start has passed some of it meanwhile.", plan.batch_id)
        return True
    found = {
        OffsetRange(TopicPartition(plan.topic, each.partition), each.offset, each.offset + 1): each
        for each in result.unreadable
    }
    if may_be_committed(services, plan, snapshot, list(found)):
        log.warning("Batch %s: an earlier attempt has read it all.", plan.batch_id)
        return True
    kept = _kept_by_others(services, plan, attempt)
    findings = [
        unreadable_record(plan, offsets, each.reason, places_for(kept, plan.topic_id, offsets))
        for offsets, each in found.items()
    ]
    services.ledger.set_aside(attempt, set_aside(plan, found), findings)
    raise RecordsUnreadable(
        attempt.batch_id, [f"{offsets}: {each.reason}" for offsets, each in found.items()]
    )


def _kept_by_others(services: Services, plan: BatchPlan, attempt: Attempt) -> list[KeptFiles]:
    """What other attempts hold, of whatever batch: they may have read what this one could not."""
    own = quarantined_at(services, StagingPath.of(plan, attempt.attempt_id))
    return [each for each in staged(services).kept if each.place != own]


@contextmanager
def _probes_deleted(services: Services, staging: StagingPath) -> Iterator[None]:
    """What the reads have written is gone at the end; else it goes with the attempt's directory."""
    try:
        yield
    finally:
        try:
            services.store.delete(staging.probe)
        except StorageError as error:
            log.warning("What the search has written could not be deleted: %s", error)


def _has_expired(plan: BatchPlan, snapshot: BrokerSnapshot) -> bool:
    """True when the log begins after an offset that the batch claims."""
    return any(
        bounds.log_start_offset > each.offsets.from_offset
        for each in plan.ranges
        if (bounds := snapshot.partitions.get(each.offsets.partition.partition))
    )


def _searched(services: Services, attempt: Attempt) -> SearchResult:
    """What applications of their own have found: another one for each read that ends its own.

    All of them take as long as one landing may, at most, and the read that is going on then.
    """
    batch, store = services.ledger.batch(attempt.batch_id).plan, services.store
    staging = StagingPath.of(batch, attempt.attempt_id)
    landing = LandingPlan.from_json(store.read(staging.plan).decode())
    snapshot = services.broker.snapshot(batch.topic)
    logs = (
        offset_range(
            TopicPartition(batch.topic, partition),
            bounds.log_start_offset,
            bounds.readable_until(landing.isolation),
        )
        for partition, bounds in snapshot.partitions.items()
    )
    plan = SearchPlan(
        landing=replace(landing, output=store.uri(staging.probe)),
        logs=tuple(each for each in logs if each),
        output="",
    )
    log.info("Batch %s has failed again: looking for offsets that can't be read.", batch.batch_id)
    now = services.clock.now()
    ends_at = now + services.feed.spark.max_application_time
    for number in range(MOST_DEATHS):
        place, notes = staging.isolation(number), list[ReadNote]()
        plan = replace(
            plan,
            output=store.uri(f"{place}/{RESULT_NAME}"),
            # The other half is left for its last read, and to say what it has found.
            longest_seconds=(ends_at - now).total_seconds() / 2,
        )
        try:
            with topic_watched(services, batch, attempt.attempt_id):
                return _found(services, attempt, plan, place, notes)
        except (ApplicationFailed, ApplicationOverdue) as error:
            has_hung = isinstance(error, ApplicationOverdue)
            known = known_after(plan.known, notes, death(error.args[2], has_hung=has_hung))
            now = services.clock.now()
            if len(known) == len(plan.known) or now >= ends_at:
                raise
            log.warning("A read has ended its application, and another one goes on: %s", error)
            plan = replace(plan, known=tuple(known))
    return SearchResult()


def _found(
    services: Services,
    attempt: Attempt,
    plan: SearchPlan,
    place: str,
    notes: list[ReadNote],
) -> SearchResult:
    """What one application has found, with a note for each read.

    Raises ApplicationFailed, or ApplicationOverdue for a read that hangs.
    """
    path, text = f"{place}/{PLAN_NAME}", json.dumps(to_plain(plan))
    services.store.write(path, text.encode())
    uri = services.store.uri(path)
    order = LandingOrder(
        services.feed_name, attempt.batch_id, attempt.attempt_id, uri, plan_text=text
    )

    def noted(text: str) -> None:
        with suppress(ValueError):  # another process may have written into the line
            notes.append(from_plain(ReadNote, json.loads(text)))
            services.progress(Progress(_SEARCH, len(notes), unit="reads"))

    services.progress(Progress(_SEARCH))
    services.spark.search(order, noted=noted)
    path, text = result_text(services.store, f"{place}/{RESULT_NAME}")
    try:
        return from_plain(SearchResult, json.loads(text))
    except ValueError as error:
        raise ManifestMismatch(path, "the result of a search", str(error)) from error
