"""The roles of docs/install.md, made by the lines that stand there: what each of them may do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from tallystick.errors import LedgerRightMissing
from tallystick.ledger.ledger import Ledger
from tests.support.command_line import CommandLine, Told
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory
from tests.support.repository import DOCS

PAGE = (DOCS / "install.md").read_text()
DATABASE = "documented"
"""For the server of the tests has roles of its own."""


def dsn(server: LedgerServer, role: str) -> str:
    return f"postgresql://{DATABASE}{role}:word@127.0.0.1:{server.port}/{DATABASE}"


@pytest.fixture
def server(ledger_server: LedgerServer) -> Iterator[LedgerServer]:
    """With the roles and the database of the page."""
    for line in re.findall(r"^    (CREATE .*)$", PAGE, re.M):
        line = line.replace("tallystick", DATABASE).replace("'...'", "'word'")
        ledger_server.execute("postgres", line)
    yield ledger_server
    ledger_server.drop(DATABASE)
    for role in ("_reader", "", "_owner"):
        ledger_server.execute("postgres", f"DROP ROLE {DATABASE}{role}")


def migrated(cli: CommandLine, server: LedgerServer, *more: str, role: str = "_owner") -> Told:
    """What the page's command answers."""
    [command] = re.findall(r"^ +tallystick (ledger migrate .*)$", PAGE, re.M)
    words = command.replace(" tallystick", f" {DATABASE}").split()
    asked = cli.with_stage(environ={**cli.stage.environ, "LEDGER_DSN": dsn(server, role)})
    return asked(*words, *more)


def test_the_documented_roles_write_and_read(cli: CommandLine, server: LedgerServer) -> None:
    done = migrated(cli, server)
    assert done.code == 0, done.err
    assert re.search(rf"role {DATABASE} may run: \d\d grants made just now\.", done.out)
    assert f"role {DATABASE}_reader may read: " in done.out

    story = LedgerStory(dsn(server, ""))
    story.open({0: (0, 20)})
    story.committed((0, 0, 10))
    with closing(Ledger(dsn(server, "_reader"))) as reader:
        assert [each.feed for each in reader.feed_heads(most_runs=1)] == [FEED]
        assert [each.feed for each in reader.figures()] == [FEED]
        assert len(reader.files(FEED)) == len(story.ledger.files(FEED)) > 0
        with pytest.raises(LedgerRightMissing, match="permission denied"):
            reader.fold(FEED)
    story.ledger.close()

    again = migrated(cli, server, "--json").json
    assert (again["applied"], [each["given"] for each in again["granted"]]) == ([], [[], []])
    assert [each["purpose"] for each in again["granted"]] == ["run", "read"]


def test_a_role_that_runs_neither_migrates_nor_grants(
    cli: CommandLine, server: LedgerServer
) -> None:
    refused = migrated(cli, server, role="")
    assert refused.code != 0
    assert "Only the ledger's owner migrates" in refused.err
    migrated(cli, server)
    done = migrated(cli, server, "--grant-to", f"{DATABASE}_reader", role="")
    assert done.code != 0
    assert "the ledger's owner" in done.err


def test_a_role_that_is_not_there_is_named(cli: CommandLine, server: LedgerServer) -> None:
    done = migrated(cli, server, "--grant-to", "nobody")
    assert done.code != 0
    assert "nobody" in done.err
    assert "CREATE ROLE" in done.err
