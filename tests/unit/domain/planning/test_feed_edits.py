"""What a feed's file says otherwise than the ledger, as a table."""

from __future__ import annotations

import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import FeedName
from tallystick.domain.planning.feed_edits import FeedInFile, FeedOnRecord, feed_edits

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
FEED = FeedName("orders")
FILE = FeedInFile("orders", "/landing", COMMITTED, "now", "0 * * * *", "UTC")
LANDED = FeedOnRecord("orders", ("/landing",), {COMMITTED})
ALL = {"orders"}


@pytest.mark.parametrize(
    ("record", "declared", "said"),
    [
        (FeedOnRecord(), ALL, None),
        (FeedOnRecord("orders"), ALL, None),
        (LANDED, ALL, None),
        (FeedOnRecord("orders", ("/old", "/landing"), {COMMITTED}), ALL, None),
        (FeedOnRecord("orders", ("/old",), {COMMITTED}), ALL, "all batches of this feed lie below"),
        (FeedOnRecord("orders", ("/landing",), {UNCOMMITTED}), ALL, "lacks the records of aborted"),
        (FeedOnRecord("orders", ("/landing",), {*Isolation}), ALL, "Batches of two isolations"),
        (FeedOnRecord(others=["sales"]), ALL, "Feed sales has landed a topic named orders"),
        (FeedOnRecord(others=["sales"]), {*ALL, "sales"}, None),
        (FeedOnRecord(others=["sales"]), None, None),
        (FeedOnRecord("orders", ("/landing",), {COMMITTED}, ["sales"]), ALL, None),
    ],
)
def test_what_is_said(record: FeedOnRecord, declared: set[str] | None, said: str | None) -> None:
    found = feed_edits(FEED, FILE, record, declared)
    assert [said in each.words for each in found if said] == ([True] if said else [])
    assert len(found) == (1 if said else 0)
    assert not any(each.is_refused for each in found)


def test_the_name_of_a_retired_feed_is_refused() -> None:
    record = FeedOnRecord("old", ("/other",), retired="ada on 2026-11-28: moved to sales")
    [found] = feed_edits(FEED, FILE, record, ALL)
    assert (found.is_refused, found.key, found.value) == (True, ("feed",), "orders")
    assert "was retired by ada on 2026-11-28: moved to sales" in found.words


def test_another_topic_is_refused_and_nothing_else_is_said() -> None:
    record = FeedOnRecord("old", ("/other",), {UNCOMMITTED})
    [found] = feed_edits(FEED, FILE, record, ALL)
    assert found.is_refused
    assert (found.key, found.value) == (("source", "topic"), "orders")
    assert found.words.startswith("old, which this feed has landed so far")
