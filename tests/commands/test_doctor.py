"""`doctor` over a real ledger and files: what is in order, and what mends the rest."""

from __future__ import annotations

from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from io import StringIO
from threading import Event
from typing import Any, NoReturn

import pytest

from tallystick.cli.app import app
from tallystick.errors import ConnectionMissing, StorageRefused, TopicUnknown
from tallystick.settings.feed import Feed
from tests.support.command_line import CommandLine
from tests.support.story import Story

SHARED = "kafka://h:9092/?group.id=theirs"
WITNESSES = {"topic": "broker", "root": "store", "ledger": "ledger", "Spark": "spark"}


@pytest.fixture
def examined(landing: CommandLine) -> CommandLine:
    environ = {**landing.stage.environ, "AIRFLOW_CONN_KAFKA_DEFAULT": SHARED}
    return landing.with_stage(environ=environ)


def test_all_in_order_is_exit_0_and_leaves_nothing(examined: CommandLine, story: Story) -> None:
    told = examined("doctor", "orders")

    assert told.code == 0
    versions, connections, *lines = told.out.splitlines()
    assert versions.startswith("ok    versions: Tallystick ")
    assert connections == (
        "ok    orders: connections: all are there. Of kafka_default not used: group.id."
    )
    assert sorted(lines) == [
        "ok    orders: Spark: spark_default answers, as far as it is asked before a landing.",
        "ok    orders: ledger: answers, its schema is this version's; 0 findings on record.",
        "ok    orders: root: below /landing a probe was written, renamed and deleted.",
        "ok    orders: topic: orders has 2 partitions, and may be read.",
    ]
    assert not [each for each in story.directory.rglob("*") if "probe" in each.name]


def test_each_trouble_has_its_line_and_its_mend_and_the_others_are_still_asked(
    examined: CommandLine, story: Story
) -> None:
    class Full:
        def require_writable(self, root: str, shown_in: str) -> NoReturn:
            raise StorageRefused(root, "the quota is used up")

    class Nowhere:
        def snapshot(self, topic: str) -> NoReturn:
            raise TopicUnknown(topic, "scripted")

    def services_of(feed: Feed, environ: object) -> Any:
        harmed: dict[str, Any] = {"store": Full(), "broker": Nowhere()}
        return nullcontext(replace(story.services(), feed=feed, **harmed))

    told = examined.with_stage(services_of=services_of)("doctor", "--json")

    assert told.code == 1
    found = {each["check"]: each for each in told.json["checks"]}
    assert {name for name, each in found.items() if not each["is_ok"]} == {"topic", "root"}
    assert found["topic"]["next_step"] == TopicUnknown.next_step
    assert "the quota is used up" in found["root"]["what"]


class Watched(StringIO):
    """Standard output, which says when all of these words are out."""

    def __init__(self, *words: str) -> None:
        super().__init__()
        self.has_all, self._words = Event(), words

    def flush(self) -> None:
        if all(each in self.getvalue() for each in self._words):
            self.has_all.set()


@pytest.mark.parametrize("late", WITNESSES)
def test_each_line_is_out_though_another_witness_does_not_answer_yet(
    examined: CommandLine, story: Story, late: str
) -> None:
    out = Watched(*(f"orders: {check}: " for check in WITNESSES if check != late))

    class Late:
        def __getattr__(self, question: str) -> Any:
            def answer(*words: object) -> NoReturn:
                assert out.has_all.wait(timeout=60), "the others wait for this one"
                raise StorageRefused("/landing", "late")

            return answer

    def services_of(feed: Feed, environ: object) -> Any:
        harmed: dict[str, Any] = {WITNESSES[late]: Late()}
        return nullcontext(replace(story.services(), feed=feed, **harmed))

    with redirect_stdout(out), pytest.raises(SystemExit) as ended:
        app(["doctor", "orders"], obj=examined.with_stage(services_of=services_of).stage)

    assert ended.value.code == 1
    assert out.getvalue().splitlines()[-2].startswith(f"WRONG orders: {late}: ")


def test_each_connection_that_is_missing_is_a_line_with_its_mend(examined: CommandLine) -> None:
    def services_of(feed: Feed, environ: object) -> NoReturn:
        raise ConnectionMissing("webhdfs_default", None, "AIRFLOW_CONN_WEBHDFS_DEFAULT")

    environ = {
        name: value
        for name, value in examined.stage.environ.items()
        if not name.startswith(("AIRFLOW", "WEBHDFS", "HDFS", "SPARK", "LEDGER", "HOME"))
    }
    environ |= {"AIRFLOW_CONN_KAFKA_DEFAULT": SHARED, "SPARK_MASTER": "local[1]"}
    told = examined.with_stage(services_of=services_of, environ=environ)("doctor")

    assert told.code == 1
    wrong, mends = told.out.splitlines()[1::2], told.out.splitlines()[2::2]
    starts = ["webhdfs_default", "ledger_default"]
    assert [each.split("'")[1] for each in wrong] == starts
    assert mends == [f"      next: {ConnectionMissing.next_step}"] * 2


def test_a_feed_file_that_is_wrong_is_told_beside_the_others(examined: CommandLine) -> None:
    examined.write("wrong", "feed: wrong\n")

    told = examined("doctor")

    assert told.code == 1
    assert "      next: Correct the feed file, then run: tallystick feed check" in told.out
    assert "ok    orders: topic" in told.out
