"""`feed check` compares the files with what the ledger has of the feeds."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tallystick.errors import LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tests.support.command_line import FEED_FILE, CommandLine


def with_ledger(landing: CommandLine) -> CommandLine:
    """The command line with the ledger of its story."""

    @contextmanager
    def ledger_of(environ: Any) -> Any:
        yield Ledger(environ["LEDGER_DSN"])

    return landing.with_stage(ledger_of=ledger_of)


def test_another_topic_is_a_problem_of_the_file(landing: CommandLine) -> None:
    assert landing("land", "orders").code == 0
    cli = with_ledger(landing)
    assert cli("feed", "check").code == 0
    text = FEED_FILE.format(name="orders", until="now")
    cli.write("orders", text.replace("topic: orders", "topic: customers"))
    told = cli("feed", "check")
    assert told.code == 2
    assert told.out.startswith(
        "feeds/orders.yaml:2: source.topic: 'customers' is not accepted; accepted: orders, which"
    )
    assert cli("feed", "check", "--json").json["problems"][0]["key"] == "source.topic"


def test_what_may_be_meant_is_a_warning(landing: CommandLine) -> None:
    assert landing("land", "orders").code == 0
    cli = with_ledger(landing)
    text = FEED_FILE.format(name="orders", until="now")
    cli.write("orders", text.replace("/landing", "/elsewhere"))
    told = cli("feed", "check")
    assert (told.code, told.out.count("warning: feed orders: target.root is /elsewhere")) == (0, 1)
    assert len(cli("feed", "check", "--json").json["warnings"]) == 1


def test_what_feeds_of_a_group_have_landed_is_compared_too(landing: CommandLine) -> None:
    (landing.folder / "orders.yaml").unlink()
    text = FEED_FILE.format(name="events", until="now").replace("topic: orders", "topics: 'ord.*'")
    landing.write("events", text)
    assert landing("land", "events--orders").code == 0
    cli = with_ledger(landing)
    cli.write("events", text.replace("/landing", "/elsewhere"))
    told = cli("feed", "check")
    assert (told.code, told.out.count("warning: feed events: target.root is /elsewhere")) == (0, 1)


def test_files_are_checked_without_the_ledger_too(landing: CommandLine) -> None:
    def ledger_of(environ: Any) -> Any:
        raise LedgerUnavailable("it is down")

    told = landing.with_stage(ledger_of=ledger_of)("feed", "check")
    assert (told.code, told.out) == (0, "feeds: 1 feed in order, 0 problems.\n")
    assert told.err.startswith("Nothing was compared with the ledger: ")


def test_a_notifier_that_is_looked_for_leaves_nothing_in_the_home(tmp_path: Path) -> None:
    notify = "notify: [{notifier: airflow.sdk.BaseNotifier}]\n"
    text = FEED_FILE.format(name="orders", until="now") + notify
    (tmp_path / "orders.yaml").write_text(text)
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: each for name, each in os.environ.items() if not name.startswith("AIRFLOW")}
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", "feed", "check"],
        env=kept | {"HOME": str(home), "TALLYSTICK_FEEDS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "1 feed in order" in done.stdout) == (0, True), done.stderr
    assert list(home.iterdir()) == []
