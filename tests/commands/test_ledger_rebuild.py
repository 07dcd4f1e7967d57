"""`ledger rebuild` and `ledger export` at the command line, over a real ledger and real files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import CommandLine
from tests.support.story import Story


@pytest.fixture
def lost(landing: CommandLine, story: Story, ledger_databases: Callable[[], str]) -> CommandLine:
    """Everything is landed and published, and the ledger is empty."""
    told = landing("land", "orders", "--json")
    assert told.code == 0, told.err
    story.dsn = ledger_databases()
    return landing.with_stage(environ={**landing.stage.environ, "LEDGER_DSN": story.dsn})


def test_a_dry_run_says_what_would_be_entered(lost: CommandLine) -> None:
    dry = lost("ledger", "rebuild", "orders", "--dry-run", "--json")
    assert dry.code == 0, dry.err
    assert dry.json["is_dry_run"] is True
    assert sum(each["rows"] for each in dry.json["entered"]) == 17
    assert lost("batches", "orders", "--json").json["batches"] == []
    real = lost("ledger", "rebuild", "orders", "--json")
    assert {**real.json, "is_dry_run": True} == dry.json
    assert len(lost("batches", "orders", "--json").json["batches"]) == len(real.json["entered"])
    assert lost("ledger", "rebuild", "orders", "--json").json["entered"] == []


def test_a_rebuild_for_people_says_what_it_could_not_know(lost: CommandLine) -> None:
    lines = lost("ledger", "rebuild", "orders").out.splitlines()
    assert lines[0] == (
        "Feed orders, topic orders: 3 published batches that the ledger did not know entered,"
        " 17 rows."
    )
    assert "What manifests can't tell:" in lines
    again = lost("ledger", "rebuild", "orders").out.splitlines()
    assert len(again) == 1


def test_what_is_left_out_is_named_and_fails(lost: CommandLine, story: Story) -> None:
    file = sorted((story.directory / "landing" / "orders").rglob("*.parquet"))[0]
    file.unlink()
    told = lost("ledger", "rebuild", "orders", "--json")
    assert told.code == 1
    (left,) = told.json["left_out"]
    assert left["directory"].endswith(f"batch={left['batch_id']}")
    assert left["reasons"] == [f"{file.name} is missing"]
    words = lost("ledger", "rebuild", "orders")
    assert words.code == 1
    assert "next: docs/runbook.md, A10, says what to do with what was left out." in words.out
    damaged = lost("ledger", "rebuild", "orders", "--damaged", "--json")
    assert damaged.code == 0
    assert [each["notes"] for each in damaged.json["entered"]] == [left["reasons"]]


def test_an_export_streams_to_standard_output(landing: CommandLine) -> None:
    assert landing("land", "orders").code == 0
    told = landing("ledger", "export")
    assert told.code == 0, told.err
    lines = [json.loads(line) for line in told.out.splitlines()]
    assert lines[0]["table"] == "export"
    assert lines[-1] == {"table": "end", "rows": len(lines) - 2}
    batches = [each for each in lines if each["table"] == "batch"]
    assert {each["state"] for each in batches} == {"published"}


def test_an_export_to_a_file_is_whole_or_not_there(landing: CommandLine, tmp_path: Path) -> None:
    assert landing("land", "orders").code == 0
    out = tmp_path / "ledger.jsonl"
    told = landing("ledger", "export", "orders", "--out", str(out), "--json")
    assert told.code == 0, told.err
    assert told.json["out"] == str(out)
    lines = out.read_text().splitlines()
    assert len(lines) == sum(told.json["rows"].values()) + 2
    assert [each.name for each in tmp_path.glob("ledger.*")] == ["ledger.jsonl"]
    wrong = landing("ledger", "export", "--out", str(tmp_path / "nowhere" / "f"))
    assert wrong.code == 2
    assert "--out" in wrong.err


def test_an_export_of_an_unknown_feed_is_told(landing: CommandLine) -> None:
    told = landing("ledger", "export", "nobody")
    assert told.code == 2


def test_an_export_without_a_ledger_could_not_be_made(
    landing: CommandLine, story: Story, tmp_path: Path
) -> None:
    silent = replace(landing.stage, environ={**landing.stage.environ, "LEDGER_DSN": NOBODY})
    out = tmp_path / "ledger.jsonl"
    told = CommandLine(landing.folder, silent)("ledger", "export", "--out", str(out))
    assert told.code == 3
    assert not out.exists()


NOBODY = "postgresql://nobody@127.0.0.1:1/nowhere"
