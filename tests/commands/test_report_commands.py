"""Reports in every form, those of the past, and `complete`, over a real ledger and real files."""

from __future__ import annotations

import csv
import io
import json
import re
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.report import document as report_document
from tallystick.domain.report.coverage_map import CoverageBlock, CoverageMap
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.window import Window
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.landing.run import land_feed
from tests.support.command_line import CommandLine
from tests.support.ledger_story import finding_of
from tests.support.looks import record_look
from tests.support.report_documents import TAKEN_AT, a_document
from tests.support.scripted_broker import NOW, Kind
from tests.support.story import FEED, Story
from tests.support.waivers import accept

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOUR = timedelta(hours=1)
YEARS_LATER = datetime(2199, 1, 1, tzinfo=UTC)


def test_a_reconcile_stores_the_report_that_it_shows(landing: CommandLine, tmp_path: Path) -> None:
    landing("land", "orders")

    shown = landing("reconcile", "orders", "--format", "json")

    assert shown.code == 0, shown.err
    document = ReportDocument.from_json(shown.out)
    assert document.verdict == "PROVEN_OK"
    assert document.complete_up_to == NOW
    assert [(each.partition, each.frontier, each.rows) for each in document.partitions] == [
        (0, 15, 10), (1, 7, 7)
    ]  # fmt: skip
    assert [dict(each.holes) for each in document.partitions] == [
        {"control": 1, "aborted": 4, "compacted": 0}, {"control": 0, "aborted": 0, "compacted": 0}
    ]  # fmt: skip
    again = landing("report", "orders", "--json")
    assert (again.code, again.json) == (0, shown.json)


@pytest.mark.parametrize(
    ("form", "begins"),
    [("text", "Feed orders, topic orders"), ("csv", "kind,feed,topic"), ("html", "<!DOCTYPE html")],
)
def test_a_report_has_a_face_for_everybody(
    landing: CommandLine, tmp_path: Path, form: str, begins: str
) -> None:
    landing("land", "orders")

    shown = landing("reconcile", "orders", "--format", form)
    later = landing("report", "orders", "--format", form)

    assert shown.out.startswith(begins)
    assert later.out == shown.out


def test_the_name_of_the_file_says_the_form(landing: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "orders.html"
    landing("land", "orders")

    told = landing("reconcile", "orders", "--out", str(out))

    assert (told.code, told.out) == (0, "")
    assert f"The report is in {out}." in told.err
    assert out.read_text().startswith("<!DOCTYPE html")
    assert [each.name for each in tmp_path.iterdir() if "orders.html" in each.name] == [out.name]


def test_a_file_of_no_known_form_is_refused(landing: CommandLine, tmp_path: Path) -> None:
    told = landing("reconcile", "orders", "--out", str(tmp_path / "orders.pdf"))

    assert told.code == 2
    assert "accepted: a file with one of .txt, .json, .csv, .html" in told.err
    assert not list(tmp_path.glob("*.pdf"))


def test_a_file_that_can_not_be_written_is_wrong_use(landing: CommandLine, tmp_path: Path) -> None:
    told = landing("reconcile", "orders", "--out", str(tmp_path / "nowhere" / "orders.csv"))

    assert told.code == 2
    assert "--out" in told.err


@pytest.mark.parametrize(
    "options", [["--format", "pdf"], ["--json", "--format", "csv"], ["--json", "--out", "a.csv"]]
)
def test_an_unknown_form_and_two_answers_at_once_are_wrong_use(
    landing: CommandLine, options: list[str]
) -> None:
    assert landing("reconcile", "orders", *options).code == 2


def test_level_3_says_what_was_read_in_full_and_what_waits(landing: CommandLine) -> None:
    landing("land", "orders")

    before = landing("reconcile", "orders").out
    after = landing("reconcile", "orders", "--level", "3").out

    assert "Read in full (L3): 0 of 3 batches; 3 not yet" in before
    assert "Read in full (L3): 3 of 3 batches." in after


def test_reports_of_the_past_are_opened_again(landing: CommandLine, story: Story) -> None:
    ledger = Ledger(story.dsn)
    early, late = a_document(), replace(a_document(), taken_at=TAKEN_AT + timedelta(hours=2))
    for each in (early, late):
        ledger.store_report(each)

    newest = landing("report", "orders", "--format", "json")
    then = landing("report", "orders", "--at", "2026-11-08T13:00:00Z", "--format", "json")
    never = landing("report", "orders", "--at", "2026-11-08", "--json")

    assert ReportDocument.from_json(newest.out) == late
    assert ReportDocument.from_json(then.out) == early
    assert (newest.code, then.code) == (1, 1)
    assert never.code == 3
    assert never.json["error"]["kind"] == "ReportMissing"


def test_complete_is_yes_when_all_that_was_seen_is_landed(landing: CommandLine) -> None:
    landing("land", "orders")

    told = landing("complete", "orders", "--json")

    assert told.code == 0, told.out
    assert told.json["proof"] == "proven"
    assert told.json["at"] == told.json["complete_up_to"] == NOW.isoformat()
    assert told.json["held_back_by"] == []
    assert "is proven to be landed" in landing("complete", "orders").out


def test_complete_names_what_is_accepted_as_lost(landing: CommandLine, story: Story) -> None:
    landing("land", "orders")
    for file in (story.directory / "landing").rglob("*.parquet"):
        file.unlink()
    assert landing("reconcile", "orders").code == 1
    assert landing("complete", "orders", "--json").json["accepted"] == []
    with closing(Ledger(story.dsn)) as ledger:
        lost = ledger.findings(FEED)
        for each in lost:
            accept(ledger, each.finding_id)

    told = landing("complete", "orders", "--json")
    said = landing("complete", "orders").out

    assert (told.code, told.json["proof"]) == (0, "proven")
    accepted = told.json["accepted"][0]
    assert accepted == landing("explain", str(lost[0].finding_id), "--json").json["finding"]
    assert (accepted["number"], accepted["code"]) == (lost[0].finding_id, "A8")
    assert (accepted["verdict"], accepted["state"]) == ("PROVEN_LOSS", "waived")
    assert accepted["waiver"]["expires_at"] == "2199-01-01T00:00:00+00:00"
    assert len(told.json["accepted"]) == len(lost)
    assert "is landed, or accepted as lost: orders-" in said
    assert "orders-1 [0, 7) until 2199-01-01T00:00:00+00:00" in said
    assert "is proven to be landed" not in said


def test_complete_names_what_is_accepted_as_it_stands(landing: CommandLine, story: Story) -> None:
    landing("land", "orders")
    file = min((story.directory / "landing").rglob("*.parquet"))
    file.with_name("copy.parquet").write_bytes(file.read_bytes())
    assert landing("reconcile", "orders").code == 1
    with closing(Ledger(story.dsn)) as ledger:
        for each in ledger.findings(FEED):
            accept(ledger, each.finding_id)

    said = landing("complete", "orders")

    assert said.code == 0
    assert "is landed, or accepted as it stands: " in said.out
    assert "(B2 PROVEN_DUP) until 2199-01-01T00:00:00+00:00" in said.out
    assert "orders (A9 SUSPECTED) until" in said.out


def test_complete_names_no_waiver_that_has_nothing_to_do_with_it(
    landing: CommandLine, story: Story
) -> None:
    landing("land", "orders")
    ahead = replace(finding_of(15, 20), partition=0)
    with closing(Ledger(story.dsn)) as ledger:
        ledger.record_findings(FEED, [ahead])
        [stored] = ledger.findings(FEED)
        accept(ledger, stored.finding_id)

    assert landing("complete", "orders", "--json").json["accepted"] == []
    assert "is proven to be landed" in landing("complete", "orders").out


def test_complete_is_no_when_a_look_saw_more(landing: CommandLine, story: Story) -> None:
    landing("land", "orders")
    story.broker.logs[1].append(Kind.RECORD, 3)
    later = replace(story.broker.snapshot("orders"), taken_at=NOW + timedelta(hours=1))
    record_look(Ledger(story.dsn), FEED, later)

    told = landing("complete", "orders", "--json")
    then = landing("complete", "orders", "--at", NOW.isoformat(), "--json")
    between = landing("complete", "orders", "--at", (NOW + timedelta(minutes=5)).isoformat())

    assert (told.code, told.json["proof"], told.json["partitions_behind"]) == (1, "not proven", 1)
    assert told.json["complete_up_to"] == NOW.isoformat()
    assert told.json["held_back_by"] == [
        f"orders-1: not all that was there at {later.taken_at.isoformat()} is landed."
    ]
    assert then.code == 0
    assert between.code == 3


def test_complete_can_not_tell_what_nobody_has_looked_at(landing: CommandLine) -> None:
    assert landing("complete", "orders").code == 3
    landing("land", "orders")

    later = landing("complete", "orders", "--at", "2031-01-01", "--json")

    assert later.code == 3
    assert later.json["proof"] == "unknown"


def test_every_field_of_the_report_is_documented() -> None:
    text = (DOCS / "reports.md").read_text() + (DOCS / "cli.md").read_text()
    described = set(re.findall(r"`([^`]+)`", text))
    kinds = [
        each for each in vars(report_document).values()
        if isinstance(each, type) and is_dataclass(each)
    ]  # fmt: skip
    assert {CoverageMap} < set(kinds)
    names = {field.name for kind in (*kinds, CoverageBlock) for field in fields(kind)}
    assert names <= described


def test_a_csv_has_one_row_for_each_finding_and_partition(landing: CommandLine) -> None:
    landing("land", "orders")
    rows = list(csv.DictReader(io.StringIO(landing("reconcile", "orders", "--format", "csv").out)))

    assert [each["kind"] for each in rows] == ["partition", "partition"]
    assert json.dumps([each["frontier"] for each in rows]) == '["15", "7"]'


def test_complete_by_record_time_tells_what_came_late(landing: CommandLine, story: Story) -> None:
    end = NOW.replace(minute=0)
    for log in story.broker.logs.values():
        log.entries.clear()
    for at in (end - HOUR, end - 2 * HOUR, end):
        story.broker.logs[0].append(Kind.RECORD, 1, at=at)
    land_feed(story.services(until="window_end"), Window(end - HOUR, end), Owner("one"))
    [batch] = landing("batches", "orders", "--json").json["batches"]
    assert batch["late"] == {"rows": 1, "oldest_at": (end - 2 * HOUR).isoformat()}

    told = landing("complete", "orders", "--at", (end - HOUR).isoformat(), "--json")
    said = landing("complete", "orders", "--at", (end - HOUR).isoformat())

    assert told.json["late"] == {
        "before": (end - HOUR).isoformat(),
        "batch_id": batch["batch_id"],
        **batch["late"],
    }
    assert "Late rows from before 2026-11-01 11:00:00Z: 1 at most" in said.out
    assert told.json["complete_by"] == "record time"
    assert "Late rows: 1, the oldest" in landing("complete", "orders").out
    assert "Late" not in landing("complete", "orders", "--at", end.isoformat()).out
