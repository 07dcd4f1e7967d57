"""What a search does with Spark, without Spark: each of its reads is a landing."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.plain_json import from_plain
from tallystick.domain.planning.unreadable import ReadNote, SearchPlan, death, known_after
from tallystick.spark import searching
from tests.support.builders import a_landing, a_range

LOG = (a_range(0, 1_000),)
PLAN = SearchPlan(a_landing(*LOG, output="hdfs://nn/probe"), LOG, "hdfs://nn/result")


def test_what_can_be_read_and_not_written_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that only reads finds nothing, and every landing fails on the record."""
    landed: list[tuple[LandingPlan, str]] = []

    def land(spark: Any, plan: LandingPlan, *, mode: str = "error") -> None:
        landed.append((plan, mode))
        if any(700 in each for each in plan.ranges):
            raise MemoryError("no room for a page")

    monkeypatch.setattr(searching, "land", land)

    result = searching.search(None, PLAN, lambda note: None)  # type: ignore[arg-type]

    assert [(each.offset, each.reason) for each in result.unreadable] == [
        (700, "MemoryError: no room for a page")
    ]
    assert {(plan.output, mode) for plan, mode in landed} == {("hdfs://nn/probe", "overwrite")}
    assert len(landed) == result.probes


def test_an_application_that_dies_after_its_search_blames_no_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second try of the last suspect goes well; then the result can't be written."""
    tries: list[int] = []

    def land(spark: Any, plan: LandingPlan, *, mode: str = "error") -> None:
        if any(700 in each for each in plan.ranges):
            tries.append(sum(each.span for each in plan.ranges))
            if tries.count(1) < 2:
                raise OSError("a DataNode is away")

    monkeypatch.setattr(searching, "land", land)
    said: list[str] = []
    assert searching.search(None, PLAN, said.append).unreadable == ()  # type: ignore[arg-type]
    assert tries[-1] == 1

    notes = [from_plain(ReadNote, json.loads(each)) for each in said]
    known = known_after((), notes, death("killed", has_hung=False))
    again = searching.search(None, replace(PLAN, known=tuple(known)), said.append)  # type: ignore[arg-type]

    assert again.unreadable == ()


def test_a_read_that_ends_its_application_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python goes on while its JVM shuts down: what fails then is no record's fault."""
    ended: list[LandingPlan] = []

    class Ending:
        def range(self, rows: int) -> Ending:
            return self

        def collect(self) -> list[int]:
            if ended:
                raise RuntimeError("Cannot call methods on a stopped SparkContext")
            return [0]

    def land(spark: Any, plan: LandingPlan, *, mode: str = "error") -> None:
        if ended or any(700 in each for each in plan.ranges):
            ended.append(plan)
            raise RuntimeError("Job 1 cancelled because SparkContext was shut down")

    monkeypatch.setattr(searching, "land", land)
    spark: Any = Ending()
    plan, applications = PLAN, 0
    while True:
        said: list[str] = []
        try:
            found = searching.search(
                spark, plan, said.append, is_last=lambda _: searching.works_no_more(spark)
            )
            break
        except RuntimeError as error:
            [_] = ended
            notes = [from_plain(ReadNote, json.loads(each)) for each in said]
            known = known_after(plan.known, notes, death(str(error), has_hung=False))
            assert len(known) == notes[-1].number + 1
            plan, applications = replace(plan, known=tuple(known)), applications + 1
            ended.clear()

    assert [each.offset for each in found.unreadable] == [700]
    assert applications < 30
