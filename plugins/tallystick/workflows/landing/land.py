"""Land: give the plan to Spark, in an attempt of its own. Commits nothing, publishes nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.log_answer import LogAnswer
from tallystick.domain.batches.packing import pack
from tallystick.domain.batches.paths import MANIFEST_NAME, PROBE_PREFIX, STAGING_NAME, StagingPath
from tallystick.domain.batches.polling import UNKNOWN_BYTES_PER_RECORD, looked_at, poll_option
from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import UNKNOWN
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.failing_batches import stops_at_ends
from tallystick.errors import (
    ApplicationFailed,
    ApplicationOverdue,
    BrokerUnavailable,
    LedgerUnavailable,
    SourceChanged,
    SourceRefused,
    StorageRefused,
    TargetOccupied,
)
from tallystick.ledger.batches import BatchToLand
from tallystick.ports.progress import Progress
from tallystick.ports.spark_runner import LandingOrder
from tallystick.workflows.committing.failing import failing
from tallystick.workflows.committing.heartbeat import lease_renewed
from tallystick.workflows.committing.log_as_read import JustRead, answer_after_read, keep_answer
from tallystick.workflows.landing.searching import set_unreadable_aside
from tallystick.workflows.landing.watching import topic_watched
from tallystick.workflows.place import at
from tallystick.workflows.same_log import bounds_of, checked_logs
from tallystick.workflows.services import Services

# Rehearses a landing with a Spark server that is shared: it may be another user of HDFS than
# ours.
#
# What it writes must be ours to read, to add to, to rename and to delete. This is tried before it
# reads anything, and once a day: the sweep takes away what says that it went well.


def rehearse(services: Services, root: str, server: str, write: Callable[[str], object]) -> None:
    """Return if what the server writes can be taken over, or could be within the last day.

    `write` lets it write a small Parquet directory at a URI, and may raise what Spark raises.
    Raises StorageRefused, StorageUnavailable.
    """
    store, probe = services.store, f"{root}/{STAGING_NAME}/{PROBE_PREFIX}"
    went_well = f"{probe}{sha256(server.encode()).hexdigest()[:16]}"
    if store.status(went_well) is not None:
        return
    place = f"{probe}{services.new_id()}"
    write(store.uri(place))
    try:
        for each in store.entries(place):
            store.read(f"{place}/{each.name}")
            store.delete(f"{place}/{each.name}")
        store.write(f"{place}/{MANIFEST_NAME}", b"")
        store.rename_exclusive(place, went_well)
    except TargetOccupied:  # another feed has rehearsed meanwhile
        store.delete(place)
    except StorageRefused as error:
        reason = f"what the Spark server {server} writes is not ours; is it another user?"
        raise StorageRefused(place, f"{reason} {error.args[1]}") from error


log = logging.getLogger(__name__)

# Before a feed has landed anything, a row is taken to fill this much of a file.
_FIRST_GUESS_BYTES_PER_RECORD: Final = 100.0
_LEASES_UNTIL_VERIFIED: Final = 10


@dataclass(frozen=True, slots=True)
class Landed:
    """An attempt whose Spark application has written everything."""

    attempt: Attempt
    just_read: JustRead


def land_batch(
    services: Services, batch_id: BatchId, attempt_id: AttemptId, owner: Owner
) -> Attempt | None:
    """The attempt of `landed`, for who does not go on at once: the batch is held for longer."""
    done = landed(services, batch_id, attempt_id, owner)
    if done is None:
        return None
    with at(services, "land", batch_id):
        _hold_until_verified(services, done.attempt)
    return done.attempt


def landed(
    services: Services,
    batch_id: BatchId,
    attempt_id: AttemptId,
    owner: Owner,
    *,
    later: Callable[[Callable[[], None]], object] = lambda work: work(),
) -> Landed | None:
    """The attempt, once its Spark application has written everything; None if nothing is left to
    land. A batch without ranges gives files up: it needs no application.

    `later` does what only another process will need. Raises BatchBusy when another run's attempt is
    alive, SourceChanged when the log is not the planned one any more, StorageRefused or
    StorageUnavailable before anything is read, ApplicationFailed, ApplicationOverdue, or
    RecordsUnreadable where single records are to blame.
    """
    with at(services, "land", batch_id):
        attempt = begin(services, batch_id, attempt_id, owner)
        if attempt is None:
            return None
        with failing(services, attempt):
            # Behind the token: what a plan has cut until then is not read.
            batch = services.ledger.batch_to_land(batch_id)
    plan = batch.status.plan
    log.info(
        "Batch %s: attempt %s has token %d. %s",
        batch_id,
        attempt_id,
        attempt.token,
        "; ".join(str(each.offsets) for each in plan.ranges[:20]),
    )
    answer: LogAnswer | None = None
    with at(services, "land", plan), failing(services, attempt), lease_renewed(services, attempt):
        order, landing = prepare(services, attempt, batch)
        if plan.ranges:
            services.progress(Progress("land", total=plan.span, unit="offsets"))
            _interrupt_older(services, attempt)
            _carry_out(services, attempt, order, batch.status)
            answer = answer_after_read(services, plan, landing)
            if answer:
                staging = StagingPath.of(plan, attempt_id)
                later(partial(keep_answer, services, staging, answer))
    log.info("Batch %s, attempt %s: Spark has written it.", batch_id, attempt_id)
    return Landed(attempt, JustRead(landing, answer))


def _interrupt_older(services: Services, attempt: Attempt) -> None:
    """End what older attempts of the batch still do: they can commit nothing, and take room.

    A server that is silent is asked once.
    """
    if attempt.token == 1:
        return
    for each in services.ledger.dead_attempts(services.feed_name):
        is_older = each.attempt.batch_id == attempt.batch_id and not each.has_committed
        if is_older and not services.spark.interrupt(each.attempt.attempt_id):
            return


def _carry_out(
    services: Services, attempt: Attempt, order: LandingOrder, before: BatchStatus
) -> None:
    """Let Spark write the batch; raises ApplicationFailed or -Overdue, or RecordsUnreadable.

    Where it fails before it reads, it is no batch's fault: the ledger hears of no application.
    """
    reading: list[str] = []

    def started(application_id: str) -> None:
        reading.append(application_id)
        _note_application(services, attempt, application_id)

    try:
        with topic_watched(services, before.plan, attempt.attempt_id):
            services.spark.run(order, started=started)
        return
    except (ApplicationFailed, ApplicationOverdue) as error:
        failed = error
    # Not while the error is handled: Python would chain it to every error of the search.
    if reading and failed.blames_batch:
        services.ledger.renew_lease(attempt, services.lease)
        with lease_renewed(services, attempt):  # the search has a time of its own
            failed.blames_batch = set_unreadable_aside(services, attempt, before)
        failed.reads_nothing = not failed.blames_batch
    raise failed


def begin(
    services: Services, batch_id: BatchId, attempt_id: AttemptId, owner: Owner
) -> Attempt | None:
    """A new attempt with the newest token; None when the batch is done or given up."""
    attempt = services.ledger.begin_attempt(
        batch_id, attempt_id=attempt_id, owner=owner, lease=services.lease
    )
    if attempt is None:
        log.info("Batch %s is over: nothing to land.", batch_id)
    return attempt


def prepare(
    services: Services, attempt: Attempt, to_land: BatchToLand
) -> tuple[LandingOrder, LandingPlan]:
    """What Spark is started with, after everything that could fail early has been looked at."""
    batch = to_land.status.plan
    staging = StagingPath.of(batch, attempt.attempt_id)
    shown_in = f"{batch.root}/{services.feed_name}"
    with _beside(partial(services.store.require_writable, batch.root, shown_in)):
        snapshot = services.broker.snapshot(batch.topic)
        isolation = _isolation_of(services, batch)
        if batch.ranges:
            _require_same_log(services, batch, isolation, snapshot, to_land.logs)
        plan = _landing_plan(services, to_land, isolation, staging, snapshot)
        text = plan.to_json()
        services.store.write(staging.plan, text.encode())
    order = LandingOrder(
        feed=services.feed_name,
        batch_id=attempt.batch_id,
        attempt_id=attempt.attempt_id,
        plan_uri=services.store.uri(staging.plan),
        plan_text=text,
        told=services.progress,
        rehearse=partial(rehearse, services, batch.root),
    )
    return order, plan


@contextmanager
def _beside(work: Callable[[], object]) -> Iterator[None]:
    """The work is done in a thread meanwhile; what it raises comes before what the block raises."""
    with ThreadPoolExecutor(1, thread_name_prefix="beside") as pool:
        done = pool.submit(work)
        try:
            yield
        finally:
            done.result()


def _isolation_of(services: Services, batch: BatchPlan) -> Isolation:
    """A repair reads as what it replaces was read: by another isolation rows of it might go."""
    proofs = map(services.ledger.committed_batch, {each.batch_id for each in batch.replaces})
    read_as = {each.manifest.isolation for each in proofs if each} or {services.isolation}
    wider = Isolation.READ_UNCOMMITTED
    return wider if wider in read_as else Isolation.READ_COMMITTED


def _require_same_log(
    services: Services,
    batch: BatchPlan,
    isolation: Isolation,
    snapshot: BrokerSnapshot,
    logs: Sequence[GenerationAccount],
) -> None:
    """Raise SourceChanged unless the log is the very one that the plan saw, up to the claims."""
    if not snapshot.is_of(batch):
        raise SourceChanged(
            batch.batch_id, f"topic {batch.topic} was re-created since the batch was planned"
        )
    checks = checked_logs(services, snapshot, logs)
    for planned in batch.ranges:
        offsets = planned.offsets
        bounds = bounds_of(services, snapshot, offsets.partition)
        if bounds.log_start_offset > offsets.from_offset:
            raise SourceChanged(
                batch.batch_id,
                f"{offsets} was planned, but the log now starts at {bounds.log_start_offset}",
            )
        check = checks.get(offsets.partition.partition, UNKNOWN)
        if not check.holds_below(offsets.until_offset):
            raise SourceChanged(batch.batch_id, f"{offsets}: {check.words('since it was planned')}")
        readable = bounds.readable_until(isolation)
        if readable < offsets.until_offset:
            raise BrokerUnavailable(
                services.servers,
                f"{offsets} was readable when it was planned, and nothing of it was cut, but under"
                f" {isolation.value} the log can be read up to {readable} only now",
            )


def _landing_plan(
    services: Services,
    to_land: BatchToLand,
    isolation: Isolation,
    staging: StagingPath,
    snapshot: BrokerSnapshot,
) -> LandingPlan:
    batch, target = to_land.status.plan, services.feed.target
    ranges = [each.offsets for each in batch.ranges]
    return LandingPlan(
        batch_id=batch.batch_id,
        attempt_id=staging.attempt_id,
        topic=batch.topic,
        isolation=isolation,
        scans=pack(
            ranges,
            bytes_per_record=to_land.bytes_per_record or _FIRST_GUESS_BYTES_PER_RECORD,
            target_file_bytes=target.target_file_bytes,
            stops_at_ends=stops_at_ends(to_land.status, to_land.logs),
        ),
        output=services.store.uri(staging.data),
        kafka_options={**services.kafka_options, **_poll_option(services, ranges)},
        compression=target.compression,
        compression_level=target.compression_level,
        replication=target.replication,
        leader_epochs={
            each.partition.partition: snapshot.partitions[each.partition.partition].leader_epoch
            for each in ranges
        },
    )


def _poll_option(services: Services, ranges: Sequence[OffsetRange]) -> dict[str, str]:
    """What keeps a poll within the memory, by some records of the longest ranges."""
    sizes: list[float] = []
    try:
        for offsets in looked_at(ranges) if ranges else ():
            sizes += services.broker.bytes_per_record(services.topic, offsets).values()
    except SourceRefused as error:
        log.warning("How large the records are can't be told: %s", error)
        sizes.append(UNKNOWN_BYTES_PER_RECORD)
    return poll_option(max(sizes, default=0.0))


def _note_application(services: Services, attempt: Attempt, application_id: str) -> None:
    """The id is for people who look; without it Spark goes on all the same."""
    with _borne("The application's id could not be noted"):
        services.ledger.record_application(attempt, application_id)


def _hold_until_verified(services: Services, attempt: Attempt) -> None:
    """Whoever verifies may have to wait for a worker: what was read in time must not be taken for
    abandoned meanwhile. If this run is dead, another one takes the batch over later.
    """
    with _borne("The batch could not be held for the task that verifies it"):
        services.ledger.renew_lease(attempt, services.lease * _LEASES_UNTIL_VERIFIED)


@contextmanager
def _borne(what: str) -> Iterator[None]:
    """A ledger that can't be reached is told in the log: what Spark writes is worth more."""
    try:
        yield
    except LedgerUnavailable as error:
        log.warning("%s (continuing without it): %s", what, error)
