"""Attempts that die with something in staging, and what is said of it afterwards."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.planning.log_changes import CutClaim, LogChanges
from tallystick.workflows.committing.proving import proven
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, ScriptedSpark
from tests.support.story import FEED, Story, a_landed_story

ONE, TWO, THREE = Owner("one"), Owner("two"), Owner("three")
FIRST, SECOND = AttemptId("1" * 16), AttemptId("2" * 16)
ALL = {0: list(range(25)), 1: list(range(25))}


def a_half_landed_story(dsn: str, directory: Path) -> Story:
    """Ten records of two partitions are landed, ten more are readable."""
    story = a_landed_story(dsn, directory, 10)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 10)
    return story


def landed(story: Story, attempt_id: AttemptId = FIRST, owner: Owner = ONE) -> Attempt:
    """An attempt whose application has ended well, of the one batch that is due; it dies there."""
    services = story.services()
    [batch] = plan_feed(services, None, owner).all_batches
    attempt = land_batch(services, batch.batch_id, attempt_id, owner)
    assert attempt
    return attempt


def record_proof(services: Services, attempt: Attempt) -> None:
    """What a verification does before its commit."""
    plan = services.ledger.batch(attempt.batch_id).plan
    manifest = proven(services, attempt, plan)
    path = StagingPath.of(plan, attempt.attempt_id).manifest
    services.store.write(path, manifest.to_json().encode())
    services.ledger.record_verified(attempt, manifest)


def release_claims(story: Story) -> None:
    """Nobody claims any more what a batch has claimed."""
    with story.services().ledger.planning(FEED, "orders") as session:
        cuts = tuple(
            CutClaim(
                each.plan.batch_id,
                planned.generation_id,
                planned.offsets,
                RangeState.RELEASED,
                FindingCode.SHORT_READ,
            )
            for each in session.accounts().unfinished
            for planned in each.plan.ranges
        )
        session.apply(LogChanges(cuts=cuts), None)


def expire(story: Story, until_offset: int = 20) -> None:
    """Five more records, and retention has passed the offsets below."""
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
        log.log_start_offset = until_offset


def next_run(story: Story) -> RunReport:
    return land_feed(story.services(), None, THREE)


def lost(story: Story) -> set[tuple[int, int, int]]:
    return {
        (each.partition.partition, each.from_offset, each.until_offset)
        for _, each, _ in story.services().ledger.lost(FEED)
    }


def quarantined(story: Story) -> list[Path]:
    return sorted((story.directory / "landing" / "_quarantine").rglob("*.parquet"))


def kept_in(report: RunReport) -> set[str]:
    """The directories that the losses name."""
    return {
        str(path)
        for each in report.findings
        for path in each.evidence.get("kept", ())  # type: ignore[attr-defined]
    }


def blind(story: Story) -> Services:
    """Spark can't read the record at offset 13 of partition 0."""
    services = story.services()
    spark = ScriptedSpark(story.broker, services.store)
    spark.unreadable = {(0, 13): "OutOfMemoryError"}
    return replace(services, spark=spark)
