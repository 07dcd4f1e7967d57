"""Every kind of step that a repair has, by its DAG: from the dry run to the cure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.repairing.repair import dry_repair
from tallystick.workflows.services import Services
from tests.orchestration.stage import Stage, run
from tests.support.dying_attempts import expire, landed
from tests.support.scripted_broker import Kind, ScriptedSpark
from tests.support.story import Story
from tests.support.unreadable_store import READS, UnreadableStore
from tests.workflows.repairing.test_dry_run_is_the_run import (
    copy,
    damage,
    files,
    left_behind,
    make_bare,
)

pytestmark = [
    pytest.mark.usefixtures("airflow_database"),
    # Airflow's own: it runs a small api-server in this process.
    pytest.mark.filterwarnings("default"),
]
OTHER = Owner("another")


def remove(story: Story) -> None:
    files(story)[1].unlink()


def lose(story: Story) -> None:
    """A file is gone, and Kafka has its records no more."""
    remove(story)
    expire(story, 10)


def forget_manifest(story: Story) -> None:
    (files(story)[0].parent / "_tally.json").unlink()


def cut(story: Story) -> None:
    log = story.broker.logs[0]
    log.cut(6)
    log.append(Kind.RECORD, 20, value=b"other")
    land_feed(story.services(), None, OTHER)


def leave_unread(story: Story) -> None:
    """A record that Spark can't read, until it has another version."""
    story.broker.logs[1].append(Kind.RECORD, 4)
    for _ in range(3):
        services = story.services()
        spark = ScriptedSpark(story.broker, services.store)
        spark.unreadable = {(1, 12): "ArithmeticException"}
        land_feed(replace(services, spark=spark), None, OTHER)


def hide_the_only_copy(story: Story) -> None:
    """An attempt has landed what Kafka has no more, and died; no block of its files can be read."""
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    attempt, really = landed(story), story.services
    expire(story)

    def services(*given: Any, **more: Any) -> Services:
        found = really(*given, **more)
        return replace(found, store=UnreadableStore(found.store, attempt.attempt_id, READS))

    story.services = services  # type: ignore[method-assign]


# By the fields of the plan that have a step then, and what tells two of a kind apart.
HARMS: Final[Mapping[str, Callable[[Story], object]]] = {
    "land_again": remove,
    "land_again of a damaged file": damage,
    "land_again of what is gone": lose,
    "quarantined end_with_strays": copy,
    "quarantined directory": make_bare,
    "quarantined attempt": hide_the_only_copy,
    "write_manifests": forget_manifest,
    "new_generations": cut,
    "read_again": leave_unread,
    "adopt adopted": left_behind(timedelta(0)),
}
# What can't come back stays on record as lost.
LOST: Final = {"land_again of what is gone", "quarantined attempt"}
KINDS: Final = {each.name for each in fields(RepairPlan)} - {"not_mended"}


def test_there_is_a_harm_for_each_kind_of_step() -> None:
    assert {*" ".join(HARMS).split()} >= KINDS


@pytest.mark.parametrize("harm", HARMS)
def test_every_remedy_runs_through_the_dag_from_the_dry_run_to_the_cure(
    stage: Stage, dags: Any, harm: str
) -> None:
    run(dags["ingest_orders"])
    HARMS[harm](stage.story)
    if not stage.named:
        assert run(dags["reconcile_orders"]).state == "failed"
    named = stage.named
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        plan = dry_repair(services, stage.story.named()).plan
    assert all(getattr(plan, each) for each in KINDS.intersection(harm.split()))
    before = everything_below(stage.story.directory)

    dry = run(dags["repair_orders"], findings=named)
    assert dry.state == "success"
    [shown] = dry.shown
    assert shown["has_steps"]
    assert everything_below(stage.story.directory) == before
    done = run(dags["repair_orders"], dry_run=False, findings=named)

    assert (done.state, done.tasks["settle"]) == ("success", "success")
    run(dags["ingest_orders"])
    with stage.services_of(None) as services:  # type: ignore[arg-type]
        run(dags["reconcile_orders"])
        left = services.ledger.findings(services.feed_name)
    verdicts = {each.finding.verdict for each in left if each.state is FindingState.OPEN}
    assert verdicts == ({Verdict.PROVEN_LOSS} if harm in LOST else set())


def everything_below(directory: Path) -> set[Path]:
    return {each for each in directory.rglob("*") if each.is_file()}
