"""A feed whose DAGs run in this process: ledger and files are real, Kafka and Spark scripted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.errors import IngestionError
from tallystick.ledger.ledger import Ledger
from tallystick.settings.feed import Feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import ScriptedSpark
from tests.support.story import Story

_TELLING = ("announce_complete", "notify")
LONG = timedelta(seconds=60)
OTHER = Owner("another run")
LANDED = {"batch.land": "success", "batch.commit_and_publish": "success"}
LEFT_OUT = dict.fromkeys(LANDED, "skipped")
AROUND = {"finish": "success", "plan": "success", "check": "success"}


@dataclass
class Stage:
    """A feed with three batches, one for each partition, and the trouble that a test writes."""

    story: Story
    lease: timedelta = LONG
    failures: dict[int, list[IngestionError]] = field(default_factory=dict)
    """By partition: what Spark raises instead of landing, one for each attempt."""

    @property
    def named(self) -> str | None:
        """The numbers of all open findings, as a repair's form has them."""
        return ", ".join(map(str, self.story.named())) or None

    @contextmanager
    def services_of(self, feed: Feed, spark: object = None) -> Iterator[Services]:
        """In the place of the adapters that connections would open."""
        services = self.story.services(lease=self.lease, max_partitions_per_batch=1)
        scripted = ScriptedSpark(self.story.broker, services.store)
        scripted.before_write = self._fail
        try:
            yield replace(services, spark=scripted)
        finally:
            services.ledger.close()

    @contextmanager
    def open_ledger(self) -> Iterator[Ledger]:
        """In the place of the ledger that its connection would open."""
        with self.services_of(None) as services:  # type: ignore[arg-type]
            yield services.ledger

    def _fail(self, plan: LandingPlan) -> None:
        partition = plan.scans[0].ranges[0].partition.partition
        if self.failures.get(partition):
            raise self.failures[partition].pop(0)

    def take_over(self, batch_id: BatchId) -> None:
        """Another run begins an attempt of the batch, and lives."""
        with self.services_of(None) as services:  # type: ignore[arg-type]
            services.ledger.begin_attempt(
                batch_id, attempt_id=AttemptId(services.new_id()), owner=OTHER, lease=LONG
            )


@dataclass
class Run:
    """How a run of a DAG ended."""

    state: str
    tasks: dict[str, str]
    """By task, with [index] for mapped ones."""
    tries: dict[str, int]
    events: list[dict[str, Any]]
    """The extra of each asset event."""
    telling: dict[str, str]
    """What comes after the others and only tells."""
    completed: list[dict[str, Any]]
    """The extra of each event of a window that is complete."""
    shown: list[Any]
    """What its page shows of a dry run."""


_clock = iter(range(10_000))


def run(dag: Any, *, step: timedelta = timedelta(hours=1), **conf: Any) -> Run:
    """The DAG, run once under an interval of its own; a small step stays among the first ones."""
    from airflow import settings
    from airflow.models.asset import AssetEvent
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    from tallystick.orchestration.run_context import SHOWN

    logical_date = datetime(2026, 11, 1, tzinfo=UTC) + next(_clock) * step
    done = dag.test(logical_date=logical_date, run_conf=conf or None)
    session = settings.Session()
    found = {
        ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]": ti
        for ti in done.get_task_instances(session=session)
    }
    events = session.scalars(
        select(AssetEvent).where(
            AssetEvent.source_run_id == done.run_id, AssetEvent.source_dag_id == dag.dag_id
        )
    ).all()
    shown = session.scalars(XComModel.get_many(run_id=done.run_id, key=SHOWN))
    done_by = {name: ti.state for name, ti in found.items()}
    return Run(
        state=done.state.value,
        tasks={name: state for name, state in done_by.items() if name not in _TELLING},
        tries={name: ti.try_number for name, ti in found.items() if name not in _TELLING},
        events=[event.extra for event in events if event.source_task_id not in _TELLING],
        telling={name: state for name, state in done_by.items() if name in _TELLING},
        completed=[event.extra for event in events if event.source_task_id in _TELLING],
        shown=[each.value for each in shown],
    )


def mapped(*batches: dict[str, str]) -> dict[str, str]:
    return {
        f"{task}[{index}]": state
        for index, batch in enumerate(batches)
        for task, state in batch.items()
    }
