"""The edge: windows, missing connections, defects, interrupts; exit codes and JSON for each."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn

import pytest

from tallystick import __version__, errors
from tallystick.cli.answers import exit_code_of
from tests.support.command_line import CommandLine

ACCEPTED = "an instant such as 2026-11-01T06:00:00Z, or a date such as 2026-11-01 (midnight UTC)"
NEXT_WINDOW = "next: Give both ends of the window, or none."
NEXT_SETTING = "next: Correct the setting and run again."
EARLY, LATE = "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"
EARLY_UTC, LATE_UTC = "2026-11-01T06:00:00+00:00", "2026-11-01T07:00:00+00:00"

WINDOWS = [
    (["--window-start", EARLY],
     ["error: --window-end is missing; accepted: an instant, when the other end is given.",
      NEXT_WINDOW]),
    (["--window-end", LATE],
     ["error: --window-start is missing; accepted: an instant, when the other end is given.",
      NEXT_WINDOW]),
    (["--window-start", "yesterday", "--window-end", LATE],
     [f"error: --window-start is 'yesterday'; accepted: {ACCEPTED}.", NEXT_SETTING]),
    (["--window-start", EARLY, "--window-end", "2026-11-01T07:00:00"],
     [f"error: --window-end is '2026-11-01T07:00:00'; accepted: {ACCEPTED};"
      " it has no offset from UTC (write Z or +01:00).", NEXT_SETTING]),
    (["--window-start", LATE, "--window-end", EARLY],
     [f"error: --window-end is '{EARLY_UTC}'; accepted: an instant after {LATE_UTC}.",
      NEXT_SETTING]),
    (["--window-start", EARLY, "--window-end", "2026-11-01T07:00:00+01:00"],
     [f"error: --window-end is '{EARLY_UTC}'; accepted: an instant after {EARLY_UTC}.",
      NEXT_SETTING]),
]  # fmt: skip


@pytest.mark.parametrize("command", ["plan", "land"])
@pytest.mark.parametrize(("options", "words"), WINDOWS)
def test_a_wrong_window_is_wrong_use(
    cli: CommandLine, command: str, options: list[str], words: list[str]
) -> None:
    cli.write("orders")
    told = cli(command, "orders", *options)
    assert (told.code, told.out) == (2, "")
    assert told.err.splitlines() == words


FEED_COMMANDS = ["plan", "land", "batches", "files", "reconcile"]


@pytest.mark.parametrize("command", FEED_COMMANDS)
def test_an_unknown_feed_is_told_before_anything_is_opened(cli: CommandLine, command: str) -> None:
    told = cli(command, "orders", "--json")
    assert told.code == 2
    assert told.json == {
        "format": "tallystick-error-1",
        "error": {
            "kind": "FeedUnknown",
            "what": "there is no feed 'orders' in feeds; the folder holds no feed file.",
            "next_step": "List the feeds: tallystick feed list",
            "may_retry": False,
            "problems": [],
        },
        "exit_code": 2,
    }


def test_airflow_is_not_imported_for_a_connection_of_the_environment_or_where_there_is_none() -> (
    None
):
    code = (
        "import sys; from tallystick.cli.stage import find_connection as find;"
        "from tallystick.errors import ConnectionMissing;"
        "find({'AIRFLOW_HOME': '/', 'AIRFLOW_CONN_A': 'kafka://h:9092'}, 'a')\n"
        "try: find({'HOME': '/nowhere'}, 'a')\n"
        "except ConnectionMissing as error: print('airflow' in sys.modules, error.accepted)"
    )

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )

    assert said.stdout.split("; ") == [
        "False AIRFLOW_CONN_A",
        "no Airflow was asked, because AIRFLOW_HOME is not set\n",
    ]


@pytest.mark.parametrize("command", FEED_COMMANDS)
def test_a_missing_connection_names_the_variable(cli: CommandLine, command: str) -> None:
    cli.write("orders")
    told = cli(command, "orders")
    assert (told.code, told.out) == (2, "")
    first = "ledger" if command in ("batches", "files") else "kafka"
    assert told.err.startswith(f"error: connection '{first}_default' does not exist; looked for:")


@pytest.mark.parametrize("arguments", [[], ["zzz"], ["plan"], ["feed"], ["plan", "a", "b"]])
def test_what_the_command_line_does_not_know_is_wrong_use(
    cli: CommandLine, arguments: list[str]
) -> None:
    assert cli(*arguments).code == 2


def test_a_broken_feed_file_gives_its_problems_as_json_too(cli: CommandLine) -> None:
    cli.write("orders", until="noww")
    told = cli("plan", "orders", "--json")
    assert told.code == 2
    assert told.json["error"]["kind"] == "FeedFileInvalid"
    assert told.json["error"]["problems"] == [
        "feeds/orders.yaml:4: plan.until: 'noww' is not accepted; accepted: now, window_end"
    ]


def test_a_reader_that_goes_away_is_no_error(cli: CommandLine) -> None:
    cli.write("orders")
    command = [sys.executable, "-m", "tallystick", "feed", "show", "orders", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **cli.stage.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def raising(error: BaseException) -> object:
    def services_of(feed: object, environ: object) -> NoReturn:
        raise error

    return services_of


def test_what_could_not_be_done_is_3_and_has_no_traceback(cli: CommandLine) -> None:
    cli.write("orders")
    down = cli.with_stage(services_of=raising(errors.BrokerUnavailable("h:9092", "no answer")))
    told = down("reconcile", "orders", "--json")
    assert told.code == 3
    assert told.err.splitlines() == [
        "error: Kafka at h:9092 did not answer: no answer.",
        "next: Check the brokers, then run again. What is committed stays; the next run lands the"
        " rest.",
    ]
    assert told.json["error"]["kind"] == "BrokerUnavailable"
    assert told.json["error"]["may_retry"] is True
    assert told.json["exit_code"] == 3


def test_a_defect_is_3_with_its_traceback(cli: CommandLine) -> None:
    cli.write("orders")
    told = cli.with_stage(services_of=raising(KeyError("x")))("plan", "orders", "--json")
    assert told.code == 3
    assert told.err.startswith("Traceback")
    assert told.err.rstrip().endswith("KeyError: 'x'")
    assert told.json["error"]["kind"] == "KeyError"


def test_an_interrupt_is_no_finding(cli: CommandLine) -> None:
    cli.write("orders")
    told = cli.with_stage(services_of=raising(KeyboardInterrupt()))("land", "orders")
    assert told.code == 130
    assert told.err.startswith("Interrupted. What is committed stays committed;")


def test_nobody_else_writes_to_standard_output_when_json_is_asked_for(
    cli: CommandLine, capfd: pytest.CaptureFixture[str]
) -> None:
    cli.write("orders")

    def noisy(feed: object, environ: object) -> NoReturn:
        print("noise of a library")  # noqa: T201  what the test is about
        os.write(1, b"noise of C code\n")
        subprocess.run(["echo", "noise of a child"], check=True)
        raise errors.LedgerUnavailable("it is asleep")

    told = cli.with_stage(services_of=noisy)("land", "orders", "--json")
    assert told.json["error"]["kind"] == "LedgerUnavailable"
    assert "noise of a library" in told.err
    found = capfd.readouterr()
    assert found.out == ""
    assert found.err == "noise of C code\nnoise of a child\n"


def test_every_error_has_its_exit_code() -> None:
    kinds = [errors.IngestionError]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    for kind in kinds:
        wanted = 2 if issubclass(kind, errors.ConfigurationError) else 3
        code = exit_code_of(kind.__new__(kind))
        assert code == (1 if kind is errors.CheckFailed else wanted), kind


def test_the_version_is_told(cli: CommandLine) -> None:
    told = cli("--version")
    assert (told.code, told.out) == (0, f"tallystick {__version__}\n")


def test_broken_feed_files_are_told_line_by_line_between_error_and_next(cli: CommandLine) -> None:
    cli.write("orders", "feed: orders\nsorce: {}\n")
    lines = cli("plan", "orders").err.splitlines()
    assert lines[0].startswith("error: feeds/orders.yaml:")
    assert lines[-1] == f"next: {errors.FeedFileInvalid.next_step}"
    assert all(line.startswith("feeds/orders.yaml:") for line in lines[1:-1])
