"""A file whose feeds are the topics that match a pattern: names there and back, who has which."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.errors import FeedFileInvalid, FeedUnknown
from tallystick.settings.feeds import feeds_of_group, file_as_written, load_feed, read_feeds
from tallystick.settings.group_names import group_of, name_in_group, topic_in_group

TOPICS = st.text("abzAZ019._-", min_size=1, max_size=60)
GROUP = """\
feed: events
source:
  topics: 'orders\\..*|Audit'
  isolation: read_uncommitted
schedule:
  cron: "0 * * * *"
  start_date: 2026-11-01
target:
  root: /data/landing
dag: shared
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "events", GROUP)
    return tmp_path


def write(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.yaml").write_text(text)


def among(folder: Path, *topics: str) -> list[str]:
    return list(feeds_of_group(folder, read_feeds(folder).groups["events"], topics))


@given(TOPICS, TOPICS)
def test_a_feeds_name_says_its_file_and_its_topic_and_no_two_topics_share_one(
    topic: str, other: str
) -> None:
    name = name_in_group("events", topic)
    assert (group_of(name), topic_in_group(name)) == ("events", topic)
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-")
    assert (name == name_in_group("events", other)) == (topic == other)


@given(st.text("ab_-1", max_size=9))
def test_what_reads_back_as_a_topic_is_how_that_topic_is_written(written: str) -> None:
    name = f"events--{written}"
    topic = topic_in_group(name)
    assert topic is None or name_in_group("events", topic) == name


def test_each_topic_that_matches_is_a_feed_with_all_that_the_file_says(folder: Path) -> None:
    assert among(folder, "orders.eu", "orders", "xorders.eu", "Audit", "__orders.x") == [
        "events--_audit",
        "events--orders_-eu",
    ]
    feed = load_feed(folder, "events--orders_-eu")
    assert (feed.name, feed.source.topic) == ("events--orders_-eu", "orders.eu")
    assert feed.source.isolation == "read_uncommitted"
    assert feed.target == read_feeds(folder).groups["events"].target
    assert read_feeds(folder).feeds == {}


def test_a_topic_that_another_file_names_is_that_files(folder: Path) -> None:
    write(
        folder, "eu", GROUP.replace("events", "eu").replace("topics: 'orders\\..*|Audit'",
        "topic: orders.eu").replace("dag: shared\n", "")
    )  # fmt: skip
    assert among(folder, "orders.eu", "orders.us") == ["events--orders_-us"]
    with pytest.raises(FeedUnknown, match=r"no other file names, not orders\.eu; retire the feed"):
        load_feed(folder, "events--orders_-eu")


def test_internal_topics_are_left_out_of_a_pattern_of_all(folder: Path) -> None:
    write(folder, "events", GROUP.replace("orders\\..*|Audit", ".*"))
    assert among(folder, "__consumer_offsets", "_own", "a") == ["events--__own", "events--a"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("events", r"a feed of group events: events--<a topic that matches"),
        ("events--clicks", r"<a topic that matches 'orders\\\\\.\.\*\|Audit'>"),
        ("events--orders.eu", "a feed of group events"),
        ("events--orders_-" + "x" * 190, "200 characters: give the topic orders.x+ a file"),
        ("other--orders_-eu", "nearest: |there are: events"),
    ],
)
def test_a_name_that_is_no_feeds_is_refused(folder: Path, name: str, words: str) -> None:
    with pytest.raises(FeedUnknown, match=words):
        load_feed(folder, name)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("'orders\\..*|Audit'", "'('", "source.topics: '(' is not accepted: missing ), unterm"),
        ("dag: shared", "dag: own", "dag: 'own' is not accepted; accepted: shared"),
        ("  isolation: read_uncommitted", "  topic: a", "source.topic: unknown key; nearest"),
    ],
)
def test_what_is_wrong_with_a_group_is_told_with_its_line(
    folder: Path, before: str, after: str, words: str
) -> None:
    write(folder, "events", GROUP.replace(before, after))
    [told] = read_feeds(folder).problems
    assert words in str(told)
    with pytest.raises(FeedFileInvalid):
        file_as_written(folder, "events")


@pytest.mark.parametrize("name", ["events--a", "events-"])
def test_no_file_has_a_name_that_could_be_a_groups_feed(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, GROUP.replace("feed: events", f"feed: {name}"))
    assert "'--' stands in names of feeds" in str(read_feeds(tmp_path).problems[0])


@pytest.mark.parametrize(
    ("root", "is_inside"),
    [("events--a", True), ("events--a/b", True), ("events", False), ("events2--a", False)],
)
def test_no_feed_lands_inside_the_directory_of_a_groups_feed(
    folder: Path, root: str, is_inside: bool
) -> None:
    text = GROUP.replace("feed: events", "feed: inner")
    write(folder, "inner", text.replace("/data/landing", f"/data/landing/{root}"))
    told = [str(each) for each in read_feeds(folder).problems]
    assert any("where feed events lands" in each for each in told) == is_inside
    assert ("inner" in read_feeds(folder).groups) != is_inside
