"""`_defaults.yaml`: what holds for every feed of a folder, and where what is wrong then stands."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.errors import FeedFileInvalid
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import feed_names, inherited, load_feed, read_feeds

DEFAULTS = """\
schedule: {cron: "0 * * * *", start_date: 2026-11-01}
target:
  root: /data/landing
  compression_level: 3
spark:
  conf: {spark.executor.cores: 2, spark.cores.max: 4}
reconcile:
  fail_on: [UNKNOWN, PROVEN_LOSS]
complete_within: 2h
"""
LEVEL = "accepted: a whole number from 1 to 22, with zstd only"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    found = tmp_path / "feeds"
    found.mkdir()
    (found / "_defaults.yaml").write_text(DEFAULTS)
    return found


def write(folder: Path, name: str, more: str = "") -> None:
    (folder / f"{name}.yaml").write_text(f"feed: {name}\nsource: {{topic: {name}}}\n{more}")


def feed_of(folder: Path, more: str) -> Feed:
    write(folder, "orders", more)
    return load_feed(folder, "orders")


def problems_in(folder: Path) -> list[str]:
    return [str(each) for each in read_feeds(folder).problems]


def test_a_feed_of_two_lines_has_what_the_defaults_say(folder: Path) -> None:
    feed = feed_of(folder, "")
    assert (feed.target.root, feed.target.compression_level) == ("/data/landing", 3)
    assert feed.complete_within == timedelta(hours=2)
    assert feed_names(folder) == list(read_feeds(folder).feeds) == ["orders"], "they are no feed"


def test_a_feed_s_own_keys_win_mappings_are_merged_and_lists_replaced(folder: Path) -> None:
    feed = feed_of(
        folder,
        "target: {root: /mine}\nspark: {conf: {spark.cores.max: 8}}\n"
        "reconcile: {fail_on: [PROVEN_DUP]}\n",
    )
    assert (feed.target.root, feed.target.compression_level) == ("/mine", 3)
    assert feed.spark.conf == {"spark.executor.cores": "2", "spark.cores.max": "8"}
    assert feed.reconcile.fail_on == ("PROVEN_DUP",)


def test_null_takes_a_default_back(folder: Path) -> None:
    feed = feed_of(
        folder,
        "target: {compression_level: null}\nspark: {conf: {spark.cores.max: null}}\n"
        "reconcile:\ncomplete_within: null\n",
    )
    assert feed.target.compression_level == 1
    assert feed.spark.conf == {"spark.executor.cores": "2"}
    assert "SUSPECTED" in feed.reconcile.fail_on
    assert feed.complete_within is None


WRONG_DEFAULTS = [
    # (id, the defaults, the one problem after the folder's name)
    ("a value", "plan: {until: noww}",
     "_defaults.yaml:1: plan.until: 'noww' is not accepted; accepted: now, window_end"),
    ("a key", "\nsuorce: {}", "_defaults.yaml:2: suorce: unknown key; nearest known key: source"),
    ("no YAML", "plan: [", "_defaults.yaml:2: it is no YAML: did not find expected node content"),
    ("nothing", "", "_defaults.yaml:1: it is empty"),
    ("a list", "[1]", "_defaults.yaml:1: a list is not accepted;"
     " accepted: a mapping of keys, as in dags/feeds/orders.yaml"),
    ("a feed", "feed: orders",
     "_defaults.yaml:1: feed: is not accepted here: a feed bears its own file's name"),
    ("a missing key of an item", "notify:\n- arguments: {}",
     "_defaults.yaml:1: notify.0.notifier: missing; accepted: a notifier's class such as"
     " airflow.providers.smtp.notifications.smtp.SmtpNotifier"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"), [row[1:] for row in WRONG_DEFAULTS], ids=[row[0] for row in WRONG_DEFAULTS]
)
def test_wrong_defaults_are_one_problem_and_there_is_no_feed(
    folder: Path, text: str, problem: str
) -> None:
    (folder / "_defaults.yaml").write_text(text)
    for number in range(9):
        write(folder, f"feed{number}")
    found = read_feeds(folder)
    assert [str(each) for each in found.problems] == [f"feeds/{problem}"]
    assert found.feeds == {}
    with pytest.raises(FeedFileInvalid) as caught:
        load_feed(folder, "feed1")
    assert f"feeds/{problem}" in str(caught.value)


def test_defaults_that_can_t_be_read_or_are_there_twice_are_told(folder: Path) -> None:
    write(folder, "orders")
    (folder / "_defaults.yml").write_text(DEFAULTS)
    assert problems_in(folder) == [
        "feeds/_defaults.yml: feeds/_defaults.yaml has the folder's defaults: keep one of them"
    ]
    (folder / "_defaults.yml").unlink()
    (folder / "_defaults.yaml").unlink()
    (folder / "_defaults.yaml").symlink_to("nowhere")
    assert problems_in(folder) == [
        "feeds/_defaults.yaml: it can't be read: No such file or directory"
    ]


WRONG_FEEDS = [
    # (id, what the feed's file says beside its two lines, the problem after the folder's name)
    ("its own value", "target: {replication: 0}", "orders.yaml:3: target.replication: 0"
     " is not accepted; accepted: a whole number from 1 to 512"),
    ("its own value in place of a default", "target:\n  compression_level: 23",
     f"orders.yaml:4: target.compression_level: 23 is not accepted; {LEVEL}"),
    ("a default that does not fit it", "target: {compression: snappy}",
     "_defaults.yaml:4: target.compression_level: 3 is not accepted: snappy has no levels (orders);"
     f" {LEVEL}"),
    ("a key that it takes back", "schedule: {cron: null}",
     'orders.yaml:3: schedule.cron: missing; accepted: a cron expression of five fields, in quotes'
     ' ("0 * * * *"), or @hourly, @daily ...'),
    ("an item of a default's list", "reconcile:\n  fail_on:\n  - LOSS",
     "orders.yaml:4: reconcile.fail_on.0: 'LOSS' is not accepted; accepted: SUSPECTED, UNKNOWN,"
     " PROVEN_DUP, PROVEN_LOSS, in a list"),
    ("no section", "target: 5", "orders.yaml:3: target: 5 is not accepted;"
     " accepted: a section of keys"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "problem"), [row[1:] for row in WRONG_FEEDS], ids=[row[0] for row in WRONG_FEEDS]
)
def test_what_is_wrong_is_told_where_it_stands(folder: Path, more: str, problem: str) -> None:
    write(folder, "orders", more)
    write(folder, "clicks")
    assert problems_in(folder) == [f"feeds/{problem}"]
    assert list(read_feeds(folder).feeds) == ["clicks"]


def test_a_missing_key_is_missing_in_the_feed_s_own_file(folder: Path) -> None:
    (folder / "_defaults.yaml").write_text("target:\n  compression: zstd\n")
    write(folder, "orders", 'schedule: {cron: "0 * * * *", start_date: 2026-11-01}\n')
    (problem,) = problems_in(folder)
    assert problem.startswith("feeds/orders.yaml:1: target.root: missing; accepted: ")


def test_where_a_default_is_refused_for_all_feeds_that_is_one_problem(folder: Path) -> None:
    for name in ("landing", "orders", "clicks"):  # `landing` lands where the others' root is
        write(folder, name, "target: {root: /data}\n" if name == "landing" else "")
    assert problems_in(folder) == [
        "feeds/_defaults.yaml:3: target.root: '/data/landing' is not accepted: it lies where feed"
        " landing lands; accepted: a directory outside of /data/landing"
    ]
    refused = read_feeds(folder, lambda feed: [(("complete_within",), "is not accepted", "less")])
    assert [str(each) for each in refused.problems] == [
        "feeds/_defaults.yaml:9: complete_within: '2h' is not accepted; accepted: less"
    ]


def test_where_a_feed_s_values_come_from(folder: Path) -> None:
    write(folder, "orders", "spark: {conf: {spark.cores.max: 8}}\nreconcile: {fail_on: [UNKNOWN]}")
    assert inherited(folder, "orders") == {
        "schedule.cron": "feeds/_defaults.yaml:1",
        "schedule.start_date": "feeds/_defaults.yaml:1",
        "target.root": "feeds/_defaults.yaml:3",
        "target.compression_level": "feeds/_defaults.yaml:4",
        "spark.conf.spark.executor.cores": "feeds/_defaults.yaml:6",
        "complete_within": "feeds/_defaults.yaml:9",
    }
