"""Faults on real services, each injected so that its offsets are known exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import Owner
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.n3_unfinished_batch import FAILING_AFTER
from tallystick.domain.window import Window
from tallystick.errors import VerificationFailed
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.payload_check import look_at_payloads
from tests.support.detector_scene import DUP, LOSS, SUSPECTED, UNKNOWN, Scene
from tests.support.kafka_producers import (
    NANOSECONDS,
    Message,
    TransactionalProducer,
    messages,
    produce,
)
from tests.support.kafka_topics import (
    ANY_TIME,
    add_partitions,
    purge,
    recreate_topic,
    set_config,
    wait_until,
    wait_until_unled,
)
from tests.support.whole_way import SessionRunner, Way

HOUR, WEEK = timedelta(hours=1), timedelta(days=7)
# The longest that a transaction may stay open, and a minute.
TOO_LONG = timedelta(minutes=16)
LONGEST_MS = 900_000
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
SHORT_LIVED = {"retention_ms": "1000", "segment_ms": "1000"}


def sent_at(instant: datetime, count: int) -> list[Message]:
    at = int(instant.timestamp() * 1000)
    return [Message(f"v{n}".encode(), timestamp_ms=at) for n in range(count)]


def start_of(scene: Scene, way: Way, partition: int = 0) -> int:
    with way.services() as services:
        return services.broker.snapshot(way.topic).partitions[partition].log_start_offset


class Faulty:
    """One feed with a fault in nearly every partition; each landed file holds one partition."""

    PURGED, NEAR, HUNG, ABORTED, MISSING, CHANGED, COPIED, SOUND, ADDED = range(9)

    def __init__(self, scene: Scene) -> None:
        self.scene, self.way = scene, scene.way("faulty", partitions=8)

    def land(self) -> None:
        servers, topic = self.scene.servers, self.way.topic
        for partition, count in (
            (self.PURGED, 10),
            (self.NEAR, 5),
            (self.HUNG, 3),
            (self.SOUND, 9),
        ):
            produce(servers, topic, messages(count), partition=partition)
        self.hung = TransactionalProducer(servers, topic, timeout_ms=LONGEST_MS)
        self.hung.open(messages(5), partition=self.HUNG)
        self.scene.landed(self.way)
        TransactionalProducer(servers, topic).commit(messages(3), partition=self.ABORTED).abort(
            messages(4), partition=self.ABORTED
        ).commit(messages(2), partition=self.ABORTED)
        self.scene.landed(self.way, runner=SessionRunner(self.scene.spark, told=uncommitted))
        for partition, count in ((self.MISSING, 6), (self.CHANGED, 7), (self.COPIED, 8)):
            produce(servers, topic, messages(count), partition=partition)
            self.scene.landed(self.way)

    def inject(self) -> None:
        scene, way, servers = self.scene, self.way, self.scene.servers
        scene.inject(way, "C2", DUP, self.ABORTED, 4, 8)
        produce(servers, way.topic, messages(20), partition=self.PURGED)
        purge(servers, way.topic, {self.PURGED: 17})
        scene.inject(way, "A1", LOSS, self.PURGED, 10, 17)
        old = datetime.now(UTC) - WEEK + HOUR
        produce(servers, way.topic, sent_at(old, 5), partition=self.NEAR)
        scene.inject(way, "W1", SUSPECTED, self.NEAR, 5, 10)
        produce(servers, way.topic, messages(4), partition=self.HUNG)
        scene.inject(way, "N2", UNKNOWN, self.HUNG, 3, 12)
        add_partitions(servers, way.topic, self.ADDED + 1)
        produce(servers, way.topic, messages(3), partition=self.ADDED)
        self._inject_into_storage()

    def _inject_into_storage(self) -> None:
        scene, way = self.scene, self.way
        with way.services() as services:
            files = {
                each.file.slices[0].partition: f"{each.directory}/{each.file.name}"
                for each in placed(services)
                if len(each.file.slices) == 1
            }
            # The second reader sees none of the aborted records.
            name = files[self.ABORTED].rpartition("/")[2]
            scene.inject(way, "C3", LOSS, self.ABORTED, 0, 12, subject=name)
            services.store.delete(files[self.MISSING])
            name = files[self.MISSING].rpartition("/")[2]
            scene.inject(way, "A8", LOSS, self.MISSING, 0, 6, subject=name)
            content = bytearray(services.store.read(files[self.CHANGED]))
            content[len(content) // 3] ^= 1
            services.store.write(files[self.CHANGED], bytes(content))
            name = files[self.CHANGED].rpartition("/")[2]
            scene.inject(way, "C1", LOSS, self.CHANGED, 0, 7, subject=name)
            directory = files[self.COPIED].rsplit("/", 1)[0]
            copy = f"{directory}/copy.parquet"
            services.store.write(copy, services.store.read(files[self.COPIED]))
            scene.inject(way, "A9 stray file", SUSPECTED, subject=copy)
            scene.inject(way, "B2", DUP, self.COPIED, 0, 8, subject=copy)


class Placed:
    """A committed file and its directory."""

    def __init__(self, directory: str, file: Any) -> None:
        self.directory, self.file = directory, file


def placed(services: Any) -> Iterator[Placed]:
    """All committed files with the directories in which readers find them."""
    for each in services.ledger.directories(services.feed_name):
        batch = services.ledger.committed_batch(each.batch_id)
        for file in batch.manifest.files:
            yield Placed(str(each.path), file)


def uncommitted(plan: LandingPlan) -> LandingPlan:
    """A job that forgets what it was told: Spark's own default."""
    return replace(plan, isolation=Isolation.READ_UNCOMMITTED)


def shortened(plan: LandingPlan) -> LandingPlan:
    """A job that stops before offset 6."""
    scans = [
        Scan(
            tuple(OffsetRange(each.partition, each.from_offset, 6) for each in scan.ranges),
            scan.max_records_per_file,
            scan.file_count,
        )
        for scan in plan.scans
    ]
    return replace(plan, scans=tuple(scans))


class Expiring:
    """Retention takes what is unread in one partition, and what was landed in the other."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.way = scene, scene.way("expired", partitions=2)

    def land(self) -> None:
        for partition in (0, 1):
            produce(self.scene.servers, self.way.topic, messages(10), partition=partition)
        self.scene.landed(self.way)

    def inject(self) -> None:
        servers, topic = self.scene.servers, self.way.topic
        produce(servers, topic, messages(20))
        set_config(servers, topic, **SHORT_LIVED)
        self.scene.inject(self.way, "A1", LOSS, 0, 10, 30)

    def settle(self) -> None:
        servers, topic = self.scene.servers, self.way.topic
        wait_until(lambda: start_of(self.scene, self.way) == 30, "retention has won")
        set_config(servers, topic, retention_ms=str(WEEK // timedelta(milliseconds=1)))
        produce(servers, topic, messages(2))


def recreated(scene: Scene) -> Way:
    way = scene.way("recreated")
    produce(scene.servers, way.topic, messages(15))
    scene.landed(way, feed=way.feed(plan={"max_records_per_run": 10}))
    recreate_topic(scene.servers, way.topic, replicas=[[2, 3]])
    produce(scene.servers, way.topic, messages(3, of="second life "))
    scene.inject(way, "A5", LOSS, 0, 10, 15)
    scene.inject(way, "A5", UNKNOWN, 0)
    return way


def short(scene: Scene) -> Way:
    way = scene.way("short")
    produce(scene.servers, way.topic, messages(10))
    for _ in range(FAILING_AFTER):
        report = way.land(SessionRunner(scene.spark, told=shortened))
        [error] = report.errors
        assert isinstance(error, VerificationFailed)
        scene.heard(way, report.findings)
    scene.inject(way, "A7", UNKNOWN, 0, 6, 10)
    scene.inject(way, "N3 failing", UNKNOWN, 0, 0, 10, subject=error.args[0])
    return way


def unreadable(scene: Scene) -> Way:
    """A producer that has sent one time in nanoseconds."""
    way = scene.way("unreadable", config=ANY_TIME)
    bad = Message(b"in nanoseconds", timestamp_ms=NANOSECONDS)
    produce(scene.servers, way.topic, [*messages(6), bad, *messages(3)])
    for _ in range(3):
        scene.heard(way, way.land().findings)
    scene.inject(way, "A11", UNKNOWN, 0, 6, 7)
    return way


def ledger_behind(scene: Scene) -> Way:
    """A ledger that was restored: it knows the first batch, and not the second."""
    database = scene.ledgers.fresh()
    way = scene.way("behind", database=database)
    produce(scene.servers, way.topic, messages(5))
    scene.landed(way)
    backup = scene.ledgers.fresh(template=database)
    produce(scene.servers, way.topic, messages(5))
    scene.landed(way)
    with way.services() as services:
        *_, newest = placed(services)
    scene.inject(way, "A10 unknown batch", UNKNOWN, subject=newest.directory)
    way.environ = {**way.environ, "LEDGER_DSN": scene.ledgers.dsn(backup)}
    return way


def written_past_the_schema(scene: Scene) -> Way:
    """Two committers of one range, and a frontier that somebody has moved."""
    way = scene.way("tampered", partitions=2)
    produce(scene.servers, way.topic, messages(10))
    produce(scene.servers, way.topic, messages(6), partition=1)
    scene.landed(way)
    first, second = (
        "generation_id = (SELECT generation_id FROM generation WHERE partition = 0)",
        "generation_id = (SELECT generation_id FROM generation WHERE partition = 1)",
    )
    scene.by_hand(
        way,
        "ALTER TABLE offset_range DROP CONSTRAINT offset_range_no_overlap",
        *(f"ALTER TABLE {each} DISABLE TRIGGER USER" for each in ("offset_range", "generation")),
        "ALTER TABLE tail_anchor DISABLE TRIGGER USER",
        "UPDATE offset_range SET state = 'released', record_count = NULL, hole_count = NULL"
        f" WHERE {first}",
        f"DELETE FROM tail_anchor WHERE {first}",
        f"UPDATE generation SET frontier = 0, read_until = NULL WHERE {first}",
    )
    scene.landed(way)
    produce(scene.servers, way.topic, messages(4), partition=1)
    scene.by_hand(
        way,
        "UPDATE offset_range SET state = 'committed', record_count = 10, hole_count = 0"
        f" WHERE {first} AND state = 'released'",
        f"UPDATE generation SET frontier = 10 WHERE {second}",
    )
    scene.inject(way, "A6 overlap", DUP, 0, 0, 10)
    scene.inject(way, "B2", DUP, 0, 0, 10)
    scene.inject(way, "A6 offsets skipped", LOSS, 1, 6, 10)
    return way


def left_behind(scene: Scene) -> Way:
    way = scene.way("left")
    produce(scene.servers, way.topic, messages(5))
    with way.services() as services:
        [batch] = plan_feed(services, None, Owner("dead")).batches
    scene.by_hand(
        way,
        "ALTER TABLE batch DISABLE TRIGGER batch_guard",
        "UPDATE batch SET planned_at = planned_at - interval '62 minutes',"
        " lease_until = lease_until - interval '62 minutes'",
    )
    scene.inject(way, "N3 left behind", UNKNOWN, subject=batch.batch_id)
    return way


def without_runs(scene: Scene) -> Way:
    """Records wait, and the hourly schedule has brought no run for four hours."""
    way = scene.way("paused")
    produce(scene.servers, way.topic, messages(5))
    scene.landed(way)
    produce(scene.servers, way.topic, messages(4))
    tables = {"plan": "planned_at", "batch": "lease_until", "attempt": "ended_at"}
    scene.by_hand(
        way,
        *(f"ALTER TABLE {table} DISABLE TRIGGER USER" for table in tables),
        *(
            f"UPDATE {table} SET {column} = {column} - interval '4 hours'"
            for table, column in tables.items()
        ),
    )
    scene.inject(way, "N1 no run", UNKNOWN, 0, 5, 9)
    return way


def without_a_plan(scene: Scene) -> Way:
    """Records wait for a feed that no run has begun."""
    way = scene.way("unplanned")
    produce(scene.servers, way.topic, messages(3))
    scene.inject(way, "N1 unread partition", UNKNOWN, 0, 0, 3)
    return way


def without_reconciles(scene: Scene) -> Way:
    """Runs come, and nobody has listed the files for three days."""
    way = scene.way("unlisted")
    produce(scene.servers, way.topic, messages(5))
    scene.landed(way)
    scene.by_hand(
        way,
        "ALTER TABLE broker_snapshot DISABLE TRIGGER USER",
        "UPDATE broker_snapshot SET taken_at = taken_at - interval '3 days'",
    )
    scene.landed(way)
    scene.inject(way, "N1 no reconcile", UNKNOWN)
    return way


def without_manifest(scene: Scene) -> Way:
    """A published directory from which somebody has deleted the one file that is not data."""
    way = scene.way("bare")
    produce(scene.servers, way.topic, messages(5))
    scene.landed(way)
    with way.services() as services:
        [file] = placed(services)
        services.store.delete(f"{file.directory}/{MANIFEST_NAME}")
    scene.inject(way, "N3 manifest lost", UNKNOWN, subject=f"{file.directory}/{MANIFEST_NAME}")
    return way


def frozen(scene: Scene) -> Way:
    """One record from the future, and others behind it that no window will reach."""
    way = scene.way("frozen", config=ANY_TIME)
    feed = way.feed(plan={"until": "window_end"})
    now = datetime.now(UTC)
    produce(scene.servers, way.topic, sent_at(now - 3 * HOUR, 3))
    produce(scene.servers, way.topic, sent_at(now + 9000 * HOUR, 1))
    produce(scene.servers, way.topic, sent_at(now - 2 * HOUR, 5))
    for ago in (1, 0):
        end = now - ago * timedelta(minutes=1)
        scene.landed(way, feed=feed, window=Window(end - HOUR, end))
    scene.inject(way, "Z5", UNKNOWN, 0, 3, 9)
    return way


def repeated(scene: Scene) -> Way:
    """A producer that has sent part of its records twice, and a feed that wants to know."""
    way = scene.way("repeated")
    produce(scene.servers, way.topic, [*messages(6), *messages(4, of="w")])
    scene.landed(way)
    produce(scene.servers, way.topic, [*messages(3, of="w"), *messages(2, of="x")])
    scene.landed(way)
    with way.services(feed=way.feed(reconcile={"payload_horizon": "1h"})) as services:
        scene.heard(way, look_at_payloads(services).findings)
    scene.inject(way, "B3", SUSPECTED, 0, 10, 13)
    return way


class Mute:
    """One of two partitions loses its only broker."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.way = scene.way("mute", partitions=2, replicas=[(2,), (3,)])

    def land(self) -> None:
        for partition in (0, 1):
            produce(self.scene.servers, self.way.topic, messages(3), partition=partition)
        self.scene.landed(self.way)

    def inject_and_reconcile(self) -> None:
        """At the very end: the broker does not come back."""
        scene = self.scene
        scene.cluster.brokers[3].stop()
        wait_until_unled(scene.servers, self.way.topic, 1)
        properties = {"bootstrap.servers": scene.servers}
        with KafkaBrokerView(
            properties, now=lambda: datetime.now(UTC), patience_seconds=10
        ) as impatient:
            scene.reconciled(self.way, broker=impatient)
        scene.inject(self.way, "U1", UNKNOWN, 1)


class Cut:
    """Two logs that an unclean election cuts at 100; one grows again, past what was read."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.visible = scene.way("cut", config=UNCLEAN)
        self.regrown = scene.way("regrown", config=UNCLEAN)

    def inject(self) -> None:
        scene, topics = self.scene, [self.visible.topic, self.regrown.topic]
        second, third = scene.cluster.brokers[2], scene.cluster.brokers[3]
        for topic in topics:
            produce(scene.servers, topic, messages(100, of="a"))
        scene.wait_until_all_in_sync(topics)
        third.kill()
        for topic in topics:
            self._wait_until_led_by(topic, 2, second.address, alone=True)
            produce(second.address, topic, messages(50, of="b"))
        for way in (self.visible, self.regrown):
            scene.landed(way)
        second.kill()
        third.start()
        for topic in topics:
            self._wait_until_led_by(topic, 3, third.address)
        produce(third.address, self.regrown.topic, messages(80, of="c"))
        second.start()
        scene.inject(self.visible, "A3 truncated", LOSS, 0, 100, 150)
        scene.inject(self.regrown, "A3 overwritten", LOSS, 0, 100, 150)

    def _wait_until_led_by(
        self, topic: str, leader: int, through: str, *, alone: bool = False
    ) -> None:
        def is_led() -> bool:
            found, in_sync = self.scene.in_sync(topic, through=through)
            return found == leader and (not alone or in_sync == {leader})

        wait_until(is_led, f"{topic} is led by {leader}", seconds=60)
