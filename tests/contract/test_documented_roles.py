"""The roles and the database that docs/install.md makes: what each of the two may do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from tallystick.errors import LedgerRefused
from tallystick.ledger.migrations import migrate
from tallystick.ledger.postgres import PostgresLedger
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory
from tests.support.repository import DOCS

OWNER, READER = "documented", "documented_reader"
"""For the server of the tests has roles of its own."""


@pytest.fixture
def addresses(ledger_server: LedgerServer) -> Iterator[Mapping[str, str]]:
    """Where each role finds the database, once the lines of the page were run."""
    lines = re.findall(
        r"^    ((?:CREATE|ALTER|\\connect) .*)$", (DOCS / "install.md").read_text(), re.M
    )
    where = "postgres"
    for line in lines:
        line = line.replace("tallystick", OWNER).replace("'...'", "'word'")
        if line.startswith("\\connect "):
            where = line.split()[1]
        else:
            ledger_server.execute(where, line)
    assert where == OWNER
    yield {
        role: f"postgresql://{role}:word@127.0.0.1:{ledger_server.port}/{OWNER}"
        for role in (OWNER, READER)
    }
    ledger_server.drop(OWNER)
    for role in (READER, OWNER):
        ledger_server.execute("postgres", f"DROP ROLE {role}")


def test_the_documented_roles_write_and_read(addresses: Mapping[str, str]) -> None:
    migrate(addresses[OWNER])
    story = LedgerStory(addresses[OWNER])
    story.open({0: (0, 20)})
    story.committed((0, 0, 10))

    reader = PostgresLedger(addresses[READER])
    assert [each.feed for each in reader.feed_heads(most_runs=1)] == [FEED]
    assert [each.feed for each in reader.figures()] == [FEED]
    assert len(reader.files(FEED)) == len(story.ledger.files(FEED)) > 0
    with pytest.raises(LedgerRefused, match="permission denied"):
        reader.fold(FEED)
    story.ledger.close()
    reader.close()
