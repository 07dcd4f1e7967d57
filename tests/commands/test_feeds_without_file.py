"""What the ledger has of a feed whose file is gone can still be read; a mistyped name is told."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from tallystick.domain.rules.waivers import Waiver, shown_digest
from tallystick.ledger.ledger import Ledger
from tests.support.command_line import CommandLine
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story


@pytest.fixture
def retired(landing: CommandLine, story: Story) -> CommandLine:
    """The topic was deleted with unread records, and then the feed's file."""

    @contextmanager
    def ledger_of(environ: Any) -> Any:
        yield Ledger(environ["LEDGER_DSN"])

    assert landing("land", "orders").code == 0
    story.broker.logs[1].append(Kind.RECORD, 3)
    landing("reconcile", "orders")
    story.broker.topic = "another"
    landing("reconcile", "orders")
    (landing.folder / "orders.yaml").unlink()
    return landing.with_stage(ledger_of=ledger_of)


def test_its_findings_and_completeness_are_readable(retired: CommandLine) -> None:
    told = retired("findings", "orders", "--json")
    assert told.code == 1
    [finding] = [each for each in told.json["findings"] if each["from_offset"] is not None]
    assert (finding["code"], finding["from_offset"], finding["until_offset"]) == ("A5", 7, 10)
    told = retired("complete", "orders", "--at", "2026-11-01T13:00:00Z")
    assert told.code == 1
    assert "orders-1" in told.out
    assert retired("report", "orders").code == 1
    assert retired("batches", "orders").code == 0
    assert retired("files", "orders").code == 0


def test_a_name_that_nobody_ever_landed_is_told(retired: CommandLine) -> None:
    for command in ("findings", "complete", "report", "batches", "files"):
        told = retired(command, "order")
        assert (told.code, "there is no feed 'order'" in told.err) == (2, True)


def retire(cli: CommandLine) -> Any:
    return cli("feed", "retire", "orders", "--reason", "sold", "--by", "ada", "--json")


def test_a_feed_that_has_ended_is_retired_with_its_proof(
    landing: CommandLine, retired: CommandLine, story: Story
) -> None:
    assert "findings are open" in retire(retired).err
    with closing(Ledger(story.dsn)) as ledger:
        for each in ledger.findings(FEED):
            digest = shown_digest(each.finding.evidence)
            until = datetime.now(UTC) + timedelta(days=1)
            ledger.waive([Waiver(each.finding_id, "known", "ada", "grace", until, digest)])

    told = retire(retired)

    assert told.code == 0
    with psycopg.connect(story.dsn) as hand:
        links = hand.execute("SELECT encode(digest, 'hex') FROM commit_link ORDER BY position")
        digests = [digest for (digest,) in links]
    assert (told.json["commits"], told.json["digest"]) == (len(digests), digests[-1])
    assert "it was retired by ada" in retire(retired).err
    assert retired("files", "orders").code == 0, "what is on record stays"
    with closing(Ledger(story.dsn)) as ledger:
        assert ledger.feed_heads(most_runs=1) == []
        assert len(ledger.feed_heads(FEED, most_runs=1)) == 1

    landing.write("orders")
    told = landing("plan", "orders")
    assert (told.code, "was retired by ada" in told.err) == (2, True)


def test_what_is_not_over_is_not_retired(landing: CommandLine, retired: CommandLine) -> None:
    landing.write("orders")
    told = retire(retired)
    assert (told.code, "take its file away first" in told.err) == (2, True)


def test_the_schema_retires_no_feed_in_mid_work_and_plans_no_retired_one(
    landing: CommandLine, story: Story
) -> None:
    retires = "INSERT INTO feed_retirement SELECT 'orders', {}, NULL, 'x', 'x', now()"
    plans = "INSERT INTO plan (feed, revision, owner, planned_at) VALUES ('orders', 99, 'x', now())"
    with closing(Ledger(story.dsn)) as ledger, psycopg.connect(story.dsn) as hand:
        with ledger.planning(FEED, "orders"):
            pass
        hand.execute(retires.format(0).encode())
        with pytest.raises(psycopg.Error, match="is retired"):
            hand.execute(plans.encode())
    assert landing("plan", "orders").code == 0
    assert landing("land", "orders").code == 0
    for commits in (0, 1):
        with psycopg.connect(story.dsn) as hand, pytest.raises(psycopg.Error, match="last link"):
            hand.execute(retires.format(commits).encode())
