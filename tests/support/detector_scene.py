"""Feeds whose faults are known: what was injected stands beside what was found."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import psycopg

from sandbox.services.kafka import KafkaCluster
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding
from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.rule import Rule
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.kafka_topics import admin, create_topic, wait_until
from tests.support.ledger_server import OWNER_ROLE, LedgerServer
from tests.support.whole_way import Way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOSS, UNKNOWN, DUP = Verdict.PROVEN_LOSS, Verdict.UNKNOWN, Verdict.PROVEN_DUP
SUSPECTED = Verdict.SUSPECTED


@dataclass(frozen=True, slots=True)
class Told:
    """A finding without its words: what it says, of which offsets exactly."""

    feed: str
    code: str
    """With its name, where the code has several."""
    verdict: Verdict
    partition: int | None = None
    from_offset: int | None = None
    until_offset: int | None = None
    subject: str = ""

    @classmethod
    def of(cls, finding: Finding) -> Told:
        return cls(
            finding.feed,
            said_by(finding.rule, finding.name),
            finding.verdict,
            finding.partition,
            finding.from_offset,
            finding.until_offset,
            finding.subject,
        )

    def __str__(self) -> str:
        place = self.feed if self.partition is None else f"{self.feed}-{self.partition}"
        interval = "" if self.from_offset is None else f" [{self.from_offset}, {self.until_offset})"
        return f"{self.code} {self.verdict.value:11} {place}{interval} {self.subject}".rstrip()


def said_by(rule: Rule, name: str) -> str:
    """The rule's code, with the name of its finding where it has several."""
    return f"{rule.code.value} {name}" if rule.names else rule.code.value


class LateClock:
    """The wall clock, some time ahead: what has to last longer than a test may take."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class LateLedger:
    """A ledger whose clock is some time ahead, as after a wait of so long."""

    def __init__(self, ledger: Any, ahead: timedelta) -> None:
        self._ledger, self._ahead = ledger, ahead

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._ledger, verb)

    def clock(self) -> datetime:
        return self._ledger.clock() + self._ahead


@dataclass
class Scene:
    """One cluster, one HDFS, one Spark session; feeds by name, with all that was found in them."""

    cluster: KafkaCluster
    environ: Mapping[str, str]
    spark: SparkSession
    ledgers: LedgerServer
    injected: list[Told] = field(default_factory=list)
    found: dict[str, set[Told]] = field(default_factory=dict)
    holes: dict[str, set[tuple[HoleClass, int]]] = field(default_factory=dict)
    """By feed, the classes of holes that each partition has."""

    @property
    def servers(self) -> str:
        return self.cluster.bootstrap_servers

    def way(
        self,
        name: str,
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
        database: str | None = None,
    ) -> Way:
        """A new feed with a topic of its own."""
        create_topic(
            self.servers,
            name,
            partitions=partitions,
            config=config,
            replicas=[list(each) for each in replicas or [(2, 3)] * partitions],
        )
        dsn = self.ledgers.dsn(database or self.ledgers.fresh())
        self.found[name], self.holes[name] = set(), set()
        return Way(name, {**self.environ, "LEDGER_DSN": dsn}, self.spark, name)

    def inject(
        self,
        way: Way,
        code: str,
        verdict: Verdict,
        partition: int | None = None,
        from_offset: int | None = None,
        until_offset: int | None = None,
        *,
        subject: str = "",
    ) -> None:
        """Write down a fault, to the offset where it has an interval."""
        place = partition, from_offset, until_offset
        self.injected.append(Told(way.name, code, verdict, *place, subject))

    def heard(self, way: Way, findings: Iterable[Finding]) -> None:
        """Keep what was found above what is normal."""
        self.found[way.name] |= {
            Told.of(each) for each in findings if each.verdict in FAILING_VERDICTS
        }

    def landed(self, way: Way, **more: Any) -> None:
        """A run in which no batch failed."""
        self.heard(way, way.landed(**more).findings)

    def reconciled(
        self, way: Way, *, later: timedelta = timedelta(), **changes: Any
    ) -> ReconcileReport:
        """What a reconcile finds, some time later by every clock."""
        with way.services(**changes) as services:
            if later:
                clock, ledger = LateClock(later), LateLedger(services.ledger, later)
                services = replace(services, clock=clock, ledger=ledger)
            report = reconcile(services)
        self.heard(way, report.findings)
        self.holes[way.name] |= {
            (kind, each.account.partition.partition)
            for each in report.partitions
            for kind, count in each.holes.items()
            if count
        }
        return report

    def by_hand(self, way: Way, *statements: str) -> None:
        """Write past the ledger's schema."""
        with psycopg.connect(way.environ["LEDGER_DSN"], user=OWNER_ROLE, autocommit=True) as hand:
            for each in statements:
                hand.execute(each.encode())

    def in_sync(self, topic: str, *, through: str | None = None) -> tuple[int, set[int]]:
        """Leader and in-sync replicas of the topic's partition 0."""
        found = admin(through or self.servers).list_topics(topic, timeout=10)
        partition = found.topics[topic].partitions[0]
        return partition.leader, set(partition.isrs)

    def wait_until_all_in_sync(self, topics: Iterable[str]) -> None:
        """Return when every partition of the topics has its leader and both replicas."""

        def are_in_sync() -> bool:
            known = admin(self.servers).list_topics(timeout=10).topics
            parts = [part for each in topics for part in known[each].partitions.values()]
            return all(part.leader > 0 and len(part.isrs) == len(part.replicas) for part in parts)

        wait_until(are_in_sync, "all replicas in sync", seconds=60)


NOTHING: Final = "-"


def confusion(injected: Iterable[Told], found: Iterable[Told]) -> Counter[tuple[str, str]]:
    """How often a fault of one code was told as which; exact places only.

    A fault that nobody told is under `-`, and so is a finding for which there is no fault.
    """
    left = Counter(found)
    counts: Counter[tuple[str, str]] = Counter()
    for each in injected:
        same_place = [
            other
            for other in left
            if left[other]
            and (other.feed, other.partition, other.from_offset, other.until_offset, other.subject)
            == (each.feed, each.partition, each.from_offset, each.until_offset, each.subject)
        ]
        best = each if left[each] else next(iter(same_place), None)
        counts[each.code, best.code if best else NOTHING] += 1
        if best:
            left[best] -= 1
    for other, count in left.items():
        if count:
            counts[NOTHING, other.code] += count
    return counts


def drawn(counts: Counter[tuple[str, str]]) -> str:
    """The matrix as text: injected down, found across."""
    order = [said_by(rule, name) for rule in RULES for name in rule.names or [""]] + [NOTHING]
    rows = [each for each in order if any(injected == each for injected, _ in counts)]
    columns = [each for each in order if any(found == each for _, found in counts)]
    wide = max(len(each) for each in rows)
    lines = [f"{'injected | found':<{wide}}  " + "  ".join(columns)]
    for row in rows:
        cells = "  ".join(f"{counts[row, each] or '.':>{len(each)}}" for each in columns)
        lines.append(f"{row:<{wide}}  {cells}")
    return "\n".join(lines)
