"""`feed list|check|show`: exit codes, both forms, and a shown feed is a feed file again."""

from __future__ import annotations

from tallystick.settings.feeds import load_feed
from tests.support.command_line import FEED_FILE, CommandLine
from tests.support.repository import DOCS

PROBLEM = "feeds/bad.yaml:4: plan.until: 'noww' is not accepted; accepted: now, window_end"


def test_list_without_feeds(cli: CommandLine) -> None:
    told = cli("feed", "list")
    assert (told.code, told.out, told.err) == (0, "feeds holds no feed.\n", "")


def test_list(cli: CommandLine) -> None:
    cli.write("orders")
    cli.write("clicks", until="window_end")
    told = cli("feed", "list")
    assert told.code == 0
    assert told.out.splitlines() == [
        "feed    topic   schedule       until       root      file",
        "clicks  orders  0 * * * * UTC  window_end  /landing  feeds/clicks.yaml",
        "orders  orders  0 * * * * UTC  now         /landing  feeds/orders.yaml",
    ]


def test_a_file_of_many_topics_is_listed_checked_and_shown_and_so_is_each_feed(
    cli: CommandLine,
) -> None:
    text = FEED_FILE.format(name="events", until="now")
    cli.write("events", text.replace("topic: orders", "topics: 'orders.*'"))
    assert "events  orders.*  0 * * * * UTC" in cli("feed", "list").out
    assert cli("feed", "check").out == "feeds: 1 feed in order, 0 problems.\n"
    assert "topics: orders.*" in cli("feed", "show", "events").out
    told = cli("feed", "show", "events--orders_-eu")
    assert told.code == 0
    assert "feed: events--orders_-eu" in told.out
    assert "topic: orders.eu" in told.out
    refused = cli("feed", "show", "events--clicks")
    assert (refused.code, "a topic that matches 'orders.*'" in refused.err) == (2, True)


def test_a_broken_file_hides_no_other_feed(cli: CommandLine) -> None:
    cli.write("orders")
    cli.write("bad", until="noww")
    told = cli("feed", "list")
    assert told.code == 2
    assert "orders" in told.out
    assert told.err == f"{PROBLEM}\n"
    document = cli("feed", "list", "--json").json
    assert [each["feed"] for each in document["feeds"]] == ["orders"]
    assert document["problems"][0]["line"] == 4


def test_check(cli: CommandLine) -> None:
    cli.write("orders")
    told = cli("feed", "check")
    assert (told.code, told.out) == (0, "feeds: 1 feed in order, 0 problems.\n")
    cli.write("bad", until="noww")
    told = cli("feed", "check")
    assert told.code == 2
    assert told.out.splitlines() == [PROBLEM, "feeds: 1 feed in order, 1 problem."]


def test_check_as_json(cli: CommandLine) -> None:
    cli.write("orders")
    cli.write("bad", until="noww")
    told = cli("feed", "check", "--json")
    assert told.code == 2
    assert told.json == {
        "format": "tallystick-feed-check-1",
        "folder": "feeds",
        "feeds": ["orders"],
        "problems": [
            {
                "file": "feeds/bad.yaml",
                "line": 4,
                "key": "plan.until",
                "words": "is not accepted",
                "value": "'noww'",
                "accepted": "now, window_end",
                "nearest": None,
            }
        ],
        "warnings": [],
    }


def test_a_shown_feed_is_a_feed_file_again(cli: CommandLine) -> None:
    cli.write("orders")
    feed = load_feed(cli.folder, "orders")
    told = cli("feed", "show", "orders")
    assert told.code == 0
    assert told.out.startswith("# feeds/orders.yaml\nfeed: orders\nsource:\n")
    cli.write("orders", told.out)
    assert load_feed(cli.folder, "orders") == feed


def test_show_as_json_has_every_default(cli: CommandLine) -> None:
    cli.write("orders")
    document = cli("feed", "show", "orders", "--json").json
    assert document["file"] == "feeds/orders.yaml"
    assert document["feed"]["target"]["target_file_bytes"] == 256 << 20
    assert document["feed"]["reconcile"]["scrub_every"] == "7d"


def test_an_unknown_feed_is_wrong_use(cli: CommandLine) -> None:
    cli.write("orders")
    told = cli("feed", "show", "ordrs")
    assert told.code == 2
    assert told.out == ""
    assert told.err.splitlines() == [
        "error: there is no feed 'ordrs' in feeds; nearest: orders; there are: orders.",
        "next: List the feeds: tallystick feed list",
    ]


def test_a_missing_folder_is_wrong_use(cli: CommandLine) -> None:
    told = cli.with_stage(environ={"TALLYSTICK_FEEDS": "/nowhere"})("feed", "list")
    assert told.code == 2
    assert "TALLYSTICK_FEEDS" in told.err
    assert "/nowhere" in told.err


def test_check_warns_of_settings_that_a_shared_kafka_connection_has_for_others(
    cli: CommandLine,
) -> None:
    cli.write("orders")
    cli.write("clicks", FEED_FILE.format(name="clicks", until="now").replace("orders", "clicks"))
    shared = {"AIRFLOW_CONN_KAFKA_DEFAULT": "kafka://h:9092/?group.id=theirs"}
    told = cli.with_stage(environ={**cli.stage.environ, **shared})("feed", "check")

    assert told.code == 0
    assert told.err.splitlines() == [
        "Nothing was compared with the ledger: there is no ledger_default.",
        "warning: connection kafka_default: group.id: not used here.",
    ]


def test_show_says_what_comes_from_the_defaults_and_is_that_feed_again(cli: CommandLine) -> None:
    cli.write("_defaults", "complete_within: 2h\nnotify:\n- notifier: a.B\n")
    cli.write("orders")
    feed = load_feed(cli.folder, "orders")
    told = cli("feed", "show", "orders")
    assert told.out.startswith(
        "# feeds/orders.yaml\n# complete_within: feeds/_defaults.yaml:1\n"
        "# notify: feeds/_defaults.yaml:2\n"
    )
    cli.write("orders", told.out)
    assert load_feed(cli.folder, "orders") == feed


def test_the_docs_begin_with_five_lines_that_are_a_whole_feed(cli: CommandLine) -> None:
    text = (DOCS / "feeds.md").read_text()
    first, _, rest = text.partition("```")[2].partition("```")
    lines = first.splitlines()[1:]
    assert (len(lines), lines[0]) == (5, "# dags/feeds/payments.yaml")
    cli.write("payments", "\n".join(lines))
    assert cli("feed", "check").code == 0
    defaults = rest.partition("## Defaults")[2].partition("\n\n    ")[2].partition("\n\n")[0]
    cli.write("_defaults", defaults.replace("\n    ", "\n"))
    cli.write("payments", "\n".join(lines[:3]))
    told = cli("feed", "check")
    assert (told.code, told.out) == (0, "feeds: 1 feed in order, 0 problems.\n")
