"""Plan, land, batches, files, reconcile over a real ledger and real files."""

from __future__ import annotations

import re
import shutil
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import pyarrow.parquet as pq
import pytest

from tallystick.cli.answers import Table, plain_lines
from tallystick.cli.records import BatchesDocument, BatchPart, batches_view
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.window import Window
from tallystick.errors import ApplicationFailed, BrokerUnavailable, TopicGone
from tallystick.ledger.batches import Replaced
from tallystick.ports.broker import BrokerView
from tallystick.ports.spark_runner import LandingOrder
from tallystick.settings.feed import Feed
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.services import Services
from tests.support.command_line import CommandLine
from tests.support.scripted_broker import Kind
from tests.support.store_server import dead_url
from tests.support.story import Story

WINDOW = ["--window-start", "2026-11-01T06:00:00Z", "--window-end", "2026-11-01T08:00+01:00"]


def landed(landing: CommandLine) -> Any:
    told = landing("land", "orders", "--json")
    assert told.code == 0, told.err
    return told.json


def test_a_plan_shows_what_is_due_and_changes_nothing(landing: CommandLine, story: Story) -> None:
    first = landing("plan", "orders", *WINDOW, "--json")
    assert first.code == 0
    document = first.json
    assert document["window"] == {
        "from_instant": "2026-11-01T06:00:00+00:00",
        "until_instant": "2026-11-01T07:00:00+00:00",
    }
    assert (document["wanted"], document["planned"]) == (22, 22)
    assert {each["batch_id"] for each in document["batches"]} == {None}
    spans = [
        (each["partition"], each["from_offset"], each["until_offset"])
        for batch in document["batches"]
        for each in batch["ranges"]
    ]
    assert sum(until - start for _, start, until in spans) == 22
    assert landing("plan", "orders", *WINDOW, "--json").json == document
    assert landing("batches", "orders", "--json").json["batches"] == []
    assert story.staged() == []


def test_a_plan_for_people(landing: CommandLine) -> None:
    lines = landing("plan", "orders").out.splitlines()
    assert lines[0] == (
        "Feed orders, topic orders: 22 of 22 due offsets in 3 batches, 0 adopted."
        " Nothing was changed."
    )
    headers = ["batch", "generation", "window (UTC)", "partition", "from", "until", "offsets"]
    assert re.split(r" {2,}", lines[1].strip()) == headers


@pytest.mark.parametrize("command", ["plan", "land"])
def test_the_window_that_a_command_takes_by_itself_is_told(
    landing: CommandLine, command: str
) -> None:
    landing.write("orders", until="window_end")
    newest = "[2026-11-01T11:00:00+00:00, 2026-11-01T12:00:00+00:00)"

    told = landing(command, "orders", "--json")

    assert told.json["window"]["until_instant"] == "2026-11-01T12:00:00+00:00"
    assert f"No window was given: this is the newest one that is over, {newest}." in told.err


@pytest.mark.parametrize("command", ["plan", "land"])
def test_new_records_under_an_old_window_are_told_in_the_answer(
    landing: CommandLine, command: str
) -> None:
    words = (
        "plan.until is 'now': this run puts current records under the old window"
        " [2026-11-01T06:00:00+00:00, 2026-11-01T07:00:00+00:00). Use 'window_end' to keep"
        " directories by record time."
    )
    told = landing(command, "orders", *WINDOW)
    assert f"warning: {words}" in " ".join(told.out.split())
    if command == "land":
        # Said before the first batch is tried.
        assert 0 <= told.err.find(words) < told.err.find("Batch ")
    again = landing("plan", "orders", *WINDOW, "--json").json
    assert again["warnings"] == ([words] if command == "plan" else [])


def test_land_answers_a_machine_with_the_warning_too(landing: CommandLine) -> None:
    (warning,) = landing("land", "orders", *WINDOW, "--json").json["warnings"]
    assert warning.startswith("plan.until is 'now': this run puts current records under the old")


def test_land_says_what_it_did(landing: CommandLine, story: Story) -> None:
    document = landed(landing)
    assert (document["feed"], document["topic"], document["window"]) == ("orders", "orders", None)
    assert sum(each["rows"] for each in document["batches"]) == 17
    assert {each["outcome"] for each in document["batches"]} == {"published"}
    holes = [each["holes"] for each in document["batches"]]
    assert {kind: sum(each[kind] for each in holes) for kind in holes[0]} == {
        "control": 1, "aborted": 4, "compacted": 0
    }  # fmt: skip
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(7))}
    again = landed(landing)
    assert (again["batches"], again["wanted"]) == ([], 0)


def test_land_tells_its_story_on_standard_error(landing: CommandLine) -> None:
    told = landing("land", "orders")
    assert told.code == 0
    assert told.out.startswith("Feed orders, topic orders: 17 rows landed in 3 batches.\n")
    assert "is published" in told.err
    assert landing("land", "orders").out == (
        "Feed orders, topic orders: nothing is due, nothing was landed.\n"
    )


def test_files_say_exactly_what_lies_in_storage(landing: CommandLine, story: Story) -> None:
    landed(landing)
    document = landing("files", "orders", "--json").json
    assert document["feed"] == "orders"
    found: dict[int, list[int]] = {}
    for each in document["files"]:
        path = story.directory / each["path"].removeprefix("/")
        rows = pq.read_table(path, columns=["partition", "offset"], partitioning=None)
        offsets = [
            offset
            for partition, offset in zip(
                rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True
            )
            if partition == each["partition"]
        ]
        assert (each["from_offset"], each["until_offset"]) == (offsets[0], offsets[-1] + 1)
        assert each["rows"] == len(offsets)
        assert each["bytes"] == path.stat().st_size
        assert each["published"] is True
        assert each["generation"] == 1
        assert each["batch_id"] in each["path"]
        found.setdefault(each["partition"], []).extend(offsets)
    assert {p: sorted(o) for p, o in found.items()} == story.published_offsets()


def test_files_for_people(landing: CommandLine) -> None:
    assert landing("files", "orders").out == "Feed orders has no committed file yet.\n"
    landed(landing)
    lines = landing("files", "orders").out.splitlines()
    assert lines[0].split() == ["partition", "from", "until", "rows", "bytes", "published", "path"]
    assert all(" yes        /landing/orders/gen=1/dt=" in line for line in lines[1:-1])
    assert lines[-1].startswith("3 files, ")
    told = landing("files", "orders", "--json").json
    once = {each["path"]: each["bytes"] for each in told["files"]}
    assert (told["file_count"], told["total_bytes"]) == (len(once), sum(once.values()))


def test_files_find_the_one_that_holds_an_offset(landing: CommandLine) -> None:
    batch_ids = [each["batch_id"] for each in landed(landing)["batches"]]
    told = landing("files", "orders", "--find", "orders-1 6", "--json")
    assert told.code == 0
    [place] = told.json["places"]
    assert (place["state"], place["batch_id"] in batch_ids) == ("landed", True)
    [file] = place["files"]
    assert (file["partition"], file["from_offset"], file["until_offset"]) == (1, 0, 7)
    lines = landing("files", "orders", "--find", "orders-1 6").out.splitlines()
    assert lines[0].startswith("landed: Offset 6 of orders-1 is landed. Batch ")
    assert lines[1] == f"  {file['path']}"
    aborted = landing("files", "orders", "--find", "0 11").out
    assert aborted.startswith(
        "hole: Offset 11 of orders-0 has no record: its transaction was aborted"
    )
    wrong = landing("files", "orders", "--find", "payments-0 5")
    assert wrong.code == 2
    assert "a partition and an offset (orders-3 41007)" in wrong.err


def test_batches_say_state_attempts_ranges_and_holes(landing: CommandLine) -> None:
    assert landing("batches", "orders").out == "Feed orders has no batch yet.\n"
    landed(landing)
    batches = landing("batches", "orders", "--json").json["batches"]
    assert [each["state"] for each in batches] == ["published"] * 3
    for each in batches:
        assert each["offsets"] == each["rows"] + sum(each["holes"].values())
        assert each["offsets"] == sum(r["until_offset"] - r["from_offset"] for r in each["ranges"])
        assert each["rows"] == sum(r["rows"] for r in each["ranges"])
        assert [attempt["outcome"] for attempt in each["attempts"]] == ["committed"]
        assert each["attempts"][0]["application_id"].startswith("local-")
        assert each["attempts"][0]["attempt"]["owner"].startswith("cli:")
        assert each["directory"].endswith(f"batch={each['batch_id']}")
        assert each["planned_at"] <= each["committed_at"] <= each["published_at"]
        assert each["committed_at"].endswith("+00:00")
        assert each["held_by"] is None
    lines = landing("batches", "orders").out.splitlines()
    assert len(lines) == 4
    assert "published" in lines[1]
    assert max(len(line) for line in lines) <= 120


@pytest.mark.parametrize(
    ("hours", "shown"),
    [(1, "2026-11-01 00:00-01:00"), (24, "2026-11-01 00:00-24:00"),
     (25, "2026-11-01 00:00-2026-11-02 01:00"), (48, "2026-11-01 00:00-2026-11-03 00:00")],
)  # fmt: skip
def test_a_batch_is_one_short_line_and_says_what_replaced_it(hours: int, shown: str) -> None:
    start = datetime(2026, 11, 1, tzinfo=UTC)
    batch = BatchPart(
        batch_id="f" * 32, generation=1, state="landing", planned_at=start, committed_at=None,
        published_at=None, held_by="ingest_orders/scheduled__2026-11-01", directory="/d",
        window=Window(start, start + timedelta(hours=hours)),
        offsets=10_000_000, rows=None, holes=None, late=None, ranges=[], attempts=[],
        checks=[], replaces=[], replaced=Replaced([BatchId("e" * 32)], is_whole=hours == 1),
    )  # fmt: skip
    table, held, replaced = batches_view(BatchesDocument(feed="orders", batches=[batch]))
    assert isinstance(table, Table)
    _, line = plain_lines(table)
    assert shown in line
    assert len(line) <= 120
    assert held == f"Batch {'f' * 32} is held by ingest_orders/scheduled__2026-11-01."
    what = "all" if hours == 1 else "some files"
    assert replaced == f"Of batch {'f' * 32} {what} are replaced by batch {'e' * 32}."
    assert ("replaced" in line) == (hours == 1)


def test_reconcile_is_clean_after_landing(landing: CommandLine) -> None:
    landed(landing)
    told = landing("reconcile", "orders", "--json")
    assert told.code == 0, told.out
    document = told.json
    assert (document["verdict"], document["is_complete"]) == ("PROVEN_OK", True)
    assert document["findings"] == []
    assert [(each["partition"], each["frontier"], each["lag"], each["rows"]) for each in
            document["partitions"]] == [(0, 15, 0, 10), (1, 7, 0, 7)]  # fmt: skip
    assert document["partitions"][0]["holes"] == {"control": 1, "aborted": 4, "compacted": 0}
    lines = landing("reconcile", "orders").out.splitlines()
    assert lines[0].startswith("Feed orders, topic orders: PROVEN_OK (levels L0, L1, L2; ")
    assert any("10 rows + 1 control + 4 aborted" in each for each in lines)


def test_reconcile_names_what_is_gone_to_the_offset(landing: CommandLine, story: Story) -> None:
    landed(landing)
    paths = {each["path"] for each in landing("files", "orders", "--json").json["files"]}
    gone = story.directory / min(paths).removeprefix("/")
    shutil.rmtree(gone.parent)
    told = landing("reconcile", "orders", "--json")
    assert told.code == 1
    finding = told.json["findings"][0]
    assert (finding["code"], finding["name"]) == ("A8", "committed file missing")
    assert (finding["generation"], finding["feed"], finding["topic"]) == (1, "orders", "orders")
    assert isinstance(finding["partition"], int)
    assert finding["from_offset"] < finding["until_offset"]
    assert finding["cause"]
    assert finding["next_step"]
    text = landing("reconcile", "orders")
    assert text.code == 1
    assert "A8 committed file missing: " in text.out
    assert "\n  next: " in text.out


def test_a_suspicion_is_a_finding_and_names_its_file(landing: CommandLine, story: Story) -> None:
    landed(landing)
    path = landing("files", "orders", "--json").json["files"][0]["path"]
    (story.directory / path.removeprefix("/")).with_name("copy.parquet").write_bytes(b"")
    told = landing("reconcile", "orders", "--json")
    assert told.code == 1
    (finding,) = told.json["findings"]
    assert (finding["code"], finding["verdict"]) == ("A9", "SUSPECTED")
    assert finding["subject"] == f"{path.rpartition('/')[0]}/copy.parquet"


def test_what_is_lost_is_accounted_for_and_not_proven(landing: CommandLine, story: Story) -> None:
    landed(landing)
    story.broker.logs[0].append(Kind.RECORD, 20)
    story.broker.logs[0].log_start_offset = 25
    landing("land", "orders")
    shown = landing("reconcile", "orders").out.splitlines()
    (partition,) = (each for each in shown if each.startswith("orders-0  "))
    assert "[0, 35)" in partition
    assert "PROVEN_LOSS" in partition
    assert "20 rows + 1 control + 4 aborted + 10 lost" in partition
    account = next(
        each for each in landing("reconcile", "orders", "--json").json["partitions"] if each["lost"]
    )
    assert account["rows"] + sum(account["holes"].values()) + account["lost"] == 35


def test_reconcile_could_not_tell_when_the_broker_is_silent(
    landing: CommandLine, story: Story
) -> None:
    landed(landing)
    story.broker.topic = "another"
    told = landing("reconcile", "orders", "--json")
    assert told.code == 3
    document = told.json
    assert (document["verdict"], document["is_complete"]) == ("UNKNOWN", False)
    (finding,) = document["findings"]
    assert (finding["code"], finding["next_step"]) == ("U1", TopicGone.next_step)
    assert {each["lag"] for each in document["partitions"]} == {None}


def test_land_fails_loudly_after_landing_all_it_can(landing: CommandLine, story: Story) -> None:
    landed(landing)
    story.broker.logs[0].append(Kind.RECORD, 20)
    story.broker.logs[0].log_start_offset = 25
    told = landing("land", "orders", "--json")
    assert told.code == 1
    assert sum(each["rows"] for each in told.json["batches"]) == 10
    (finding,) = told.json["findings"]
    assert (finding["code"], finding["partition"]) == ("A1", 0)
    assert (finding["from_offset"], finding["until_offset"]) == (15, 25)
    assert landing("explain", str(finding["number"])).code == 0
    assert told.json["open_findings"] == []


def test_land_says_what_stands_open_from_before(landing: CommandLine, story: Story) -> None:
    landed(landing)
    story.broker.logs[0].append(Kind.RECORD, 20)
    story.broker.logs[0].log_start_offset = 25
    landing("land", "orders")

    again = landing("land", "orders", "--json")
    assert (again.code, again.json["findings"]) == (0, [])
    (standing,) = again.json["open_findings"]
    assert (standing["code"], standing["number"]) == ("A1", 1)
    assert standing["first_seen_at"]
    told = landing("land", "orders").out
    assert "Open from before: 1 trouble." in told
    assert "finding 1: orders-0 [15, 25)  PROVEN_LOSS  A1 expired: " in told
    assert "  next: tallystick findings orders" in told


def test_after_a_purge_everybody_says_the_same(landing: CommandLine, story: Story) -> None:
    landed(landing)
    story.broker.logs[0].append(Kind.RECORD, 20)
    story.broker.logs[0].log_start_offset = 25
    (told,) = landing("reconcile", "orders", "--json").json["findings"]
    listed = landing("findings", "orders", "--json")
    assert listed.code == 1
    assert [each["number"] for each in listed.json["findings"]] == [told["number"]]
    assert landing("explain", str(told["number"])).code == 0
    repaired = landing("repair", "orders", "--dry-run", "--json")
    assert repaired.code == 1
    assert [each["finding_id"] for each in repaired.json["not_mended"]] == [told["number"]]


class NoSpark:
    """A cluster where no application ever ends well."""

    def interrupt(self, attempt_id: str) -> bool:
        """Nothing runs."""
        return True

    def run(self, order: LandingOrder, *, started: object) -> NoReturn:
        raise ApplicationFailed(order.batch_id, "application_1", "no executor was given")


def test_land_says_which_batches_could_not_be_done(landing: CommandLine, story: Story) -> None:
    def services_of(feed: Feed, environ: object) -> AbstractContextManager[Services]:
        return nullcontext(replace(story.services(), feed=feed, spark=NoSpark()))

    broken = landing.with_stage(services_of=services_of)
    told = broken("land", "orders", "--json")
    assert told.code == 3
    for each in told.json["batches"]:
        assert (each["outcome"], each["rows"], each["directory"]) == ("failed", None, None)
        assert each["error"]["kind"] == "ApplicationFailed"
        assert each["error"]["may_retry"] is True
    text = broken("land", "orders")
    assert text.code == 3
    assert "Spark application application_1 failed: no executor was given." in text.out
    assert story.published_offsets() == {}
    document = landed(landing)
    assert {each["is_adopted"] for each in document["batches"]} == {True}
    attempts = landing("batches", "orders", "--json").json["batches"][0]["attempts"]
    assert [each["attempt"]["token"] for each in attempts] == [1, 2, 3]
    assert "no executor was given" in attempts[0]["outcome"]


def test_the_ledger_s_schema(landing: CommandLine) -> None:
    status = landing("ledger", "status", "--json")
    assert status.code == 0
    assert status.json["is_current"] is True
    assert status.json["ledger"].startswith("tallystick@127.0.0.1:")
    assert landing("ledger", "status").out.endswith(": up to date.\n")
    migrated = landing("ledger", "migrate", "--json")
    assert (migrated.code, migrated.json["applied"]) == (0, [])
    assert migrated.json["schema_now"] == status.json["schema_needed"]


def test_land_says_what_it_leaves_to_another_run(landing: CommandLine, story: Story) -> None:
    plan_feed(story.services(lease=timedelta(hours=1)), None, Owner("a run that died"))
    told = landing("land", "orders")
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == "Feed orders, topic orders: nothing else is due, nothing was landed."
    assert "offsets) is held by a run that died. If that run is dead, another run" in lines[1]
    [held] = landing("land", "orders", "--json").json["held"]
    assert (held["offsets"], held["held_by"]) == (22, "a run that died")
    assert 3500 < held["seconds_left"] <= 3600
    assert landing("plan", "orders", "--json").json["held"][0]["batch_id"] == held["batch_id"]


class LostAfterThePlan:
    """A broker that answers the plan and the landing, and nobody afterwards."""

    def __init__(self, broker: BrokerView) -> None:
        self._broker, self._left = broker, 4

    def __getattr__(self, name: str) -> object:
        return getattr(self._broker, name)

    def snapshot(self, topic: str) -> BrokerSnapshot:
        self._left -= 1
        if self._left < 0:
            raise BrokerUnavailable("broker:9092", "nobody listens")
        return self._broker.snapshot(topic)


def test_land_tells_what_it_landed_when_the_check_fails(landing: CommandLine, story: Story) -> None:
    def services_of(feed: Feed, environ: object) -> AbstractContextManager[Services]:
        broker: Any = LostAfterThePlan(story.broker)
        return nullcontext(replace(story.services(), broker=broker))

    told = landing.with_stage(services_of=services_of)("land", "orders", "--json")
    assert told.code == 3
    assert [(each["outcome"], each["rows"]) for each in told.json["batches"]] == [("published", 17)]
    [error] = told.json["errors"]
    assert error["kind"] == "BrokerUnavailable"
    assert error["what"].startswith("feed orders, at check: Kafka at broker:9092 did not answer")
    assert "feed orders, at check" in told.err
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(7))}


@pytest.mark.parametrize("command", [["plan"], ["land"], ["repair"], ["ledger", "rebuild"]])
def test_a_file_system_that_is_away_is_named_before_the_path_that_was_asked_for(
    landing: CommandLine, story: Story, command: list[str]
) -> None:
    url = dead_url()
    name_nodes = NameNodes([url], where="connection webhdfs_default", retry_seconds=0.1)

    def services_of(feed: Feed, environ: object) -> AbstractContextManager[Services]:
        store = WebHdfsFileStore(name_nodes, "hdfs://nn:8020")
        return nullcontext(replace(story.services(), store=store))

    told = landing.with_stage(services_of=services_of)(*command, "orders")
    address = url.removeprefix("http://")
    away = f"HDFS at {address} (connection webhdfs_default) could not serve /"
    assert told.code == 3
    assert re.search(rf": {re.escape(away)}\S*: {address} takes no connections\.", told.err)
