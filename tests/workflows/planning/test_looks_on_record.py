"""Whoever looks records: the next look asks for what this one has seen of a log (invariant 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.workflows.landing.checking import check
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import NOW, Kind
from tests.support.story import FEED, Story, a_landed_story

ONE, TWO = Owner("one"), Owner("two")
LONG_ENOUGH = 1.0


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions, landed up to 40; of the first one 60 more are readable."""
    story = a_landed_story(ledger_databases(), tmp_path, 40)
    story.broker.logs[0].append(Kind.RECORD, 60, value=b"old")
    return story


def cut(story: Story, partition: int = 0, at: int = 50) -> None:
    """All from the offset on is gone, and other records have taken its place, and more."""
    story.broker.logs[partition].cut(at)
    story.broker.logs[partition].append(Kind.RECORD, 70, value=b"new")


def told_cuts(story: Story) -> set[tuple[int | None, int | None, int | None]]:
    return {
        (each.finding.partition, each.finding.from_offset, each.finding.until_offset)
        for each in story.services().ledger.findings(FEED)
        if each.finding.code is FindingCode.LOG_CUT
    }


def test_a_reconcile_that_reads_for_hours_has_its_look_on_record_before(story: Story) -> None:
    def cut_and_land() -> None:
        cut(story)
        land_feed(story.services(), None, TWO)

    services = story.services()
    spark: Any = Meanwhile(services.spark, cut_and_land, method="scrub")
    reconcile(replace(services, spark=spark), Level.L3)

    assert told_cuts(story) == {(0, 50, 100)}


def test_nobody_looks_between_a_plan_s_question_and_its_record(story: Story) -> None:
    rival = Thread(target=lambda: reconcile(story.services()))

    class Slow:
        def __getattr__(self, name: str) -> Any:
            return getattr(story.broker, name)

        def snapshot(self, topic: str) -> Any:
            if rival.ident is None:
                rival.start()
                rival.join(LONG_ENOUGH)
                assert rival.is_alive(), "it waits for the plan, and has seen nothing yet"
                cut(story)
            return story.broker.snapshot(topic)

    broker: Any = Slow()
    land_feed(replace(story.services(), broker=broker), None, TWO)
    rival.join()

    assert told_cuts(story) == set(), "nobody has seen what was cut"


@pytest.mark.parametrize(
    "look",
    [
        lambda story: reconcile(story.services()),
        lambda story: check(story.services(), NOW, ONE),
        lambda story: repair_feed(story.services(), (), ONE),
    ],
    ids=["reconcile", "check", "repair"],
)
def test_what_a_look_has_seen_is_named_when_it_is_cut(
    story: Story, look: Callable[[Story], object]
) -> None:
    look(story)
    cut(story)

    land_feed(story.services(), None, TWO)

    assert told_cuts(story) == {(0, 50, 100)}


def test_a_repair_of_one_partition_replaces_no_witness_of_another(story: Story) -> None:
    story.broker.logs[1].append(Kind.RECORD, 60)
    reconcile(story.services())
    cut(story, 1)
    land_feed(story.services(), None, TWO)
    [stopped] = story.services().ledger.findings(FEED)
    story.broker.logs[0].append(Kind.RECORD, 60)
    reconcile(story.services())
    cut(story, 0, at=120)

    repair_feed(story.services(), (stopped.finding_id,), ONE)
    land_feed(story.services(), None, Owner("three"))

    assert told_cuts(story) >= {(0, 120, 160)}
