"""What an export promises: all rows, documented, of one instant, in bounded memory."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import FeedName
from tallystick.errors import LedgerRefused, LedgerUnavailable, SchemaOutOfDate
from tallystick.ledger.exporting import FORMAT, TABLES, exported
from tallystick.ledger.statements import migrations
from tallystick.ledger.texts import compressed
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory, finding_of

DOCS = Path(__file__).resolve().parents[2] / "docs" / "ledger-export.md"
ALL_COLUMNS = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
   AND a.attnum > 0 AND NOT a.attisdropped
 GROUP BY c.relname
"""


def lines_of(story: LedgerStory, feed: FeedName | None = None) -> list[dict[str, Any]]:
    return [json.loads(each.line) for each in exported(story.dsn, feed)]


def grown(story: LedgerStory, feed: str = FEED) -> LedgerStory:
    """A story with a little of much."""
    told = LedgerStory(story.dsn, FeedName(feed))
    told.open({0: (0, 100), 1: (5, 50)})
    told.committed((0, 0, 20), (1, 5, 25))
    told.planned((0, 20, 30))
    told.ledger.record_findings(told.feed, [finding_of(20, 30, note="x")])
    told.ledger.close()
    return told


def test_every_table_and_column_is_exported_and_documented(story: LedgerStory) -> None:
    columns = dict(story.ask(ALL_COLUMNS))
    assert set(TABLES) == set(columns)
    sections = re.split(r"^## ", DOCS.read_text(), flags=re.MULTILINE)[1:]
    assert [each.split("\n", 1)[0] for each in sections] == list(TABLES)
    for section in sections:
        table = section.split("\n", 1)[0]
        rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
        documented = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
        assert sorted(documented) == sorted(columns[table]), table


def test_every_row_is_there_with_every_column(story: LedgerStory) -> None:
    grown(story)
    lines = lines_of(story)
    head, *rows, end = lines
    assert {each: head[each] for each in ("table", "format", "schema", "feed")} == {
        "table": "export", "format": FORMAT, "schema": len(migrations()), "feed": None,
    }  # fmt: skip
    assert end == {"table": "end", "rows": len(rows)}
    columns = dict(story.ask(ALL_COLUMNS))
    for table in TABLES:
        of_table = [each for each in rows if each["table"] == table]
        (count,) = story.ask(f"SELECT count(*) FROM {table}")[0]
        assert len(of_table) == count, table
        assert all(set(each) == {"table", *columns[table]} for each in of_table), table
    order = [TABLES.index(each["table"]) for each in rows]
    assert order == sorted(order)


def test_an_export_of_a_feed_has_no_row_of_another(story: LedgerStory) -> None:
    grown(story)
    grown(story, "payments")
    everything, one, other = lines_of(story), lines_of(story, FEED), lines_of(
        story, FeedName("payments")
    )  # fmt: skip
    versions = len(migrations())
    assert len(everything) - 2 == len(one) + len(other) - 4 - versions
    assert {each["feed"] for each in one if "feed" in each} == {FEED}
    batches = {each["batch_id"] for each in one if each["table"] == "batch"}
    assert {each["batch_id"] for each in one if each.get("batch_id")} == batches


def test_values_are_readable_text(story: LedgerStory) -> None:
    grown(story)
    lines = lines_of(story, FEED)
    ranges = [each for each in lines if each["table"] == "offset_range"]
    assert {each["offsets"] for each in ranges} == {"[0,20)", "[20,30)", "[5,25)"}
    proof = next(each for each in lines if each["table"] == "verification")
    assert json.loads(proof["manifest"])["batch"] == proof["batch_id"]
    assert proof["sha256"].startswith("\\x")
    assert proof["verified_at"].endswith("+00:00")
    finding = next(each for each in lines if each["table"] == "finding")
    assert finding["evidence"] == {"note": "x"}


def test_a_proof_that_was_changed_is_not_exported(story: LedgerStory) -> None:
    grown(story)
    with story.raw() as hand:
        hand.execute(
            b"INSERT INTO verification (batch_id, attempt_id, isolation, manifest, sha256,"
            b" file_sha256)"
            b" SELECT batch_id, attempt_id, isolation, %s, sha256, file_sha256 FROM verification",
            [compressed('{"format":"another"}')],
        )
    with pytest.raises(LedgerRefused, match="not the one whose hash"):
        lines_of(story)


def test_rows_that_come_meanwhile_are_not_in_it(story: LedgerStory) -> None:
    grown(story)
    rows = exported(story.dsn, None)
    next(rows)
    next(rows)
    before = story.ask("SELECT count(*) FROM batch")[0][0]
    story.planned((0, 40, 50))
    later = [each.table for each in rows]
    assert later.count("batch") == before
    assert later[-1] == "end"


def test_memory_does_not_grow_with_the_ledger(story: LedgerStory) -> None:
    grown(story)
    peaks = []
    for rows in (20_000, 200_000):
        with story.raw() as hand:
            hand.execute(
                b"INSERT INTO finding (feed, key, code, name, verdict, level, topic, from_offset,"
                b" subject, cause, next_step, evidence)"
                b" SELECT 'orders', sha256(n::text::bytea), 'A1', 'expired', 'UNKNOWN',"
                b" 'L1', 'orders', n, '', repeat('x', 200), 'Look.', '{}'"
                b" FROM generate_series(%s, %s) n",
                [rows, rows * 2],
            )
        tracemalloc.start()
        count = sum(1 for _ in exported(story.dsn, None))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert count > rows
    assert peaks[1] < 2 * peaks[0]
    assert peaks[1] < 20_000_000


def test_a_ledger_that_is_not_there_or_not_migrated_is_told(
    ledger_server: LedgerServer, ledger_database: str
) -> None:
    with pytest.raises(LedgerUnavailable):
        next(exported("postgresql://nobody@127.0.0.1:1/nowhere", None))
    ledger_server.execute(ledger_database, "DELETE FROM schema_version")
    with pytest.raises(SchemaOutOfDate):
        next(exported(ledger_server.dsn(ledger_database), None))
