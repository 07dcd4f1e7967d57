"""Rehearse: a landing in small before anything is claimed, by the very engine and at the very
place.

Spark says who it is, tries each broker and writes a small file; the user of HDFS adds to it, moves
it into the feed's own directory, and writes there. What went well is kept for a day and for these
settings, so a landing costs one listing more; whatever fails at a landing makes it due again.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Final

from tallystick.domain.batches.paths import REHEARSAL_PREFIX, STAGING_NAME
from tallystick.domain.batches.rehearsal import RehearsalPlan, Rehearsed
from tallystick.errors import (
    ApplicationFailed,
    ConfigurationError,
    FileMissing,
    RecordsUnreadable,
    SparkError,
    StorageError,
    StorageRefused,
    TargetOccupied,
)
from tallystick.ports.file_store import FileStore
from tallystick.ports.spark_runner import RehearsalOrder
from tallystick.workflows.application_result import result_text
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

_KEPT_FOR: Final = timedelta(days=1)
_TIME: Final = "%Y%m%dT%H%M%SZ"
_DENIED: Final = re.compile(
    r'Permission denied: user=(?P<user>[^,\s]+)(?:.*?inode="(?P<path>[^"]*)":(?P<owner>[^:]+):)?'
)
_CONTENT: Final = b"written to prove that a landing can be; safe to delete\n"


class RehearsalDue(Exception):
    """Something is to be landed, and no rehearsal with these settings is on record."""


def require_rehearsed(services: Services) -> None:
    """Raise RehearsalDue unless a landing was rehearsed with these settings within a day."""
    if services.setting is None:
        return
    for name in _kept(services):
        setting, _, told = name.partition("-")
        with suppress(ValueError):
            age = services.clock.now() - datetime.strptime(told, _TIME).replace(tzinfo=UTC)
            if setting == services.setting and abs(age) < _KEPT_FOR:
                return
    raise RehearsalDue


def rehearse(services: Services) -> Rehearsed:
    """What Spark has said of itself, once a landing in small went well; that is kept.

    Raises ConfigurationError where Spark, its user or its way to a broker is another one than is
    needed; StorageRefused where the feed's directory takes nothing; else what a landing raises.
    """
    with at(services, "rehearse"):
        said = _rehearsed(services, f"{REHEARSAL_PREFIX}{services.new_id()}")
        older, now = _kept(services), services.clock.now()
        if services.setting is not None:
            kept = f"{_record(services)}/{services.setting}-{now.astimezone(UTC).strftime(_TIME)}"
            services.store.write(kept, _CONTENT)
            for each in older:
                services.store.delete(f"{_record(services)}/{each}")
    log.info(
        "Rehearsed: Spark %s, Scala %s, Java %s, as %s.",
        said.spark,
        said.scala,
        said.java,
        said.user,
    )
    return said


@contextmanager
def due_again(services: Services) -> Iterator[None]:
    """An error of Spark or HDFS in the block makes a rehearsal due before the next landing."""
    try:
        yield
    except (SparkError, StorageError) as error:
        if services.setting is not None and not isinstance(error, RecordsUnreadable):
            with suppress(StorageError):
                services.store.delete(_record(services))
        raise


def prove_shown(store: FileStore, staged: str, shown: str) -> None:
    """Return if what Spark has staged can be added to and shown, and room is left beside it.

    The rename onto a directory that is there must be refused: a gateway that ignores the option
    would put later batches inside each other. A block that is written where the batch will be shows
    what no figure does: permission, both quotas of every directory above, an encryption zone.
    """
    staging = staged.rpartition("/")[0]
    store.write(f"{staged}/_added", _CONTENT)
    try:
        store.rename_exclusive(staged, staging)
    except TargetOccupied:
        store.rename_exclusive(staged, shown)
    else:
        raise StorageRefused(staging, "a rename did not stop at a directory that exists")
    store.write(f"{shown}/_block", _CONTENT)
    store.read(f"{shown}/_added")


def _rehearsed(services: Services, name: str) -> Rehearsed:
    store = services.store
    staged = f"{services.root}/{STAGING_NAME}/{name}"
    shown = f"{services.root}/{services.feed_name}/{name}"
    plan_path, data = f"{staged}/rehearsal.json", f"{staged}/data"
    nodes = services.broker.serving(services.topic)
    bounds = services.broker.snapshot(services.topic).all_partitions
    plan = RehearsalPlan(
        output=store.uri(data),
        topic=services.topic,
        kafka_options=services.kafka_options,
        from_offsets={
            each: bounds[each].readable_until(services.isolation)
            for each in nodes.values()
            if each in bounds
        },
        replication=services.feed.target.replication,
    )
    try:
        store.write(plan_path, plan.to_json().encode())
        order = RehearsalOrder(services.feed_name, name, store.uri(plan_path), plan=plan)
        try:
            services.spark.rehearse(order)
        except ApplicationFailed as error:
            if denied := _DENIED.search(str(error)):
                raise _another_user(services, denied["user"], error) from error
            raise
        try:
            said = Rehearsed.from_json(result_text(store, data)[1])
            prove_shown(store, data, shown)
        except StorageRefused as error:
            denied = _DENIED.search(str(error))
            is_sparks = denied and data in (denied["path"] or "")
            if denied and is_sparks and denied["owner"] != denied["user"]:
                raise _another_user(services, denied["owner"], error) from error
            raise
    finally:
        # Hidden from readers. A second error would hide the first one.
        with suppress(StorageError):
            store.delete(staged)
            store.delete(shown)
    if said.unread:
        named = [node for node, each in nodes.items() if f"{services.topic}-{each}" in said.unread]
        raise ConfigurationError(
            "a broker's address",
            ", ".join(named or nodes),
            f"one that Spark can reach from where it runs; it says: {said.unread}",
            where=f"topic {services.topic}, asked by Spark",
        )
    return said


def _another_user(
    services: Services, writer: str, error: SparkError | StorageError
) -> ConfigurationError:
    return ConfigurationError(
        "the user as whom Spark writes",
        writer,
        "the user of the WebHDFS connection, or one with whom he shares every right on the feed's"
        f" root (HADOOP_USER_NAME where Spark runs): {error.sentence()}",
        where=f"connection {services.feed.spark.connection}",
    )


def _record(services: Services) -> str:
    """The directory of what is kept; readers never look there."""
    return f"{services.root}/_rehearsals/{services.feed_name}"


def _kept(services: Services) -> list[str]:
    try:
        return [each.name for each in services.store.entries(_record(services))]
    except FileMissing:
        return []
