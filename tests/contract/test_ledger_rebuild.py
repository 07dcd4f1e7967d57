"""Whatever a ledger went through, one that is rebuilt from its directories says the same.

Real ledgers, and files in a local directory and in HDFS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.ledger.ledger import Ledger
from tallystick.ports.file_store import FileStore
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.services import Services
from tests.support.ledger_account import account_of
from tests.support.repaired import repaired
from tests.support.scripted_broker import Kind, Log, ScriptedBroker, ScriptedSpark
from tests.support.story import FEED, Story

pytest_plugins = ["tests.support.store_fixtures"]
OWNER = Owner("test")
STEPS = ("land", "land", "land", "repair", "repair", "fold", "recreate", "add a partition")


@pytest.fixture
def feed_in(
    store: FileStore, root: str, ledger_databases: Callable[[], str], tmp_path: Path
) -> Iterator[Callable[[ScriptedBroker, str], Services]]:
    """Services over a ledger, with files in the store below a root of the test's own."""
    opened: list[Ledger] = []

    def services(broker: ScriptedBroker, dsn: str) -> Services:
        plain = Story(dsn, tmp_path / "unused", broker).services(max_records_per_batch=9)
        target = plain.feed.target.model_copy(update={"root": root})
        opened.append(Ledger(dsn))
        spark: Any = ScriptedSpark(broker, store)
        return replace(
            plain,
            feed=plain.feed.model_copy(update={"target": target}),
            ledger=opened[-1],
            store=store,
            spark=spark,
        )

    yield services
    for each in opened:
        each.close()


def grow(services: Services, broker: ScriptedBroker, dsn: str, random: Random) -> None:
    """One step in the life of a feed."""
    match random.choice(STEPS):
        case "land":
            for log in broker.logs.values():
                for kind in random.choices(
                    list(Kind), weights=(8, 1, 1, 1), k=random.randint(0, 3)
                ):
                    log.append(kind, random.randint(1, 6))
                if log.entries and log.entries[-1].kind is not Kind.RECORD:
                    log.append(Kind.RECORD, 1)
            report = land_feed(services, None, OWNER)
            assert not report.errors
        case "repair":
            files = services.ledger.files(FEED)
            newest = max((each.plan.ordinal for each in files), default=0)
            mendable = [each for each in files if each.plan.ordinal == newest and each.file.slices]
            if mendable and broker.topic_id == mendable[0].plan.topic_id:
                repaired(services, random.choice(mendable))
        case "fold":
            Ledger(dsn).fold(FEED)
        case "recreate":
            broker.recreate(len(broker.logs))
        case "add a partition":
            broker.logs[len(broker.logs)] = Log()


@pytest.mark.parametrize(
    ("store", "seed"),
    [
        *(("local", seed) for seed in range(12)),
        # The ledger's part is the same; each takes ten seconds.
        *(pytest.param("webhdfs", seed, marks=pytest.mark.sandbox) for seed in range(4)),
    ],
    indirect=["store"],
)
def test_a_rebuilt_ledger_is_what_it_was(
    feed_in: Callable[[ScriptedBroker, str], Services],
    ledger_databases: Callable[[], str],
    seed: int,
) -> None:
    random = Random(seed)
    broker = ScriptedBroker("orders")
    broker.is_compacted = True
    grown, empty = ledger_databases(), ledger_databases()
    original = feed_in(broker, grown)
    for _ in range(random.randint(6, 14)):
        grow(original, broker, grown, random)
    land_feed(original, None, OWNER)
    rebuilt = feed_in(broker, empty)
    report = rebuild(rebuilt)
    assert report.is_whole, report.left_out
    assert not report.findings
    before, after = account_of(Dsn(grown)), account_of(Dsn(empty))
    assert after["committed"] == before["committed"]
    assert after["files"] == before["files"]
    assert after["logs"] == with_rows(before)["logs"]
    assert land_feed(rebuilt, None, OWNER).plan.all_batches == ()
    assert rebuild(rebuilt).entered == []


class Dsn:
    """Where a ledger is."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn


def with_rows(account: dict[str, Any]) -> dict[str, Any]:
    """The account without logs of which nothing was ever committed: no manifest names them."""
    committed = {key[:2] for key in account["committed"]}
    return {**account, "logs": {k: log for k, log in account["logs"].items() if k in committed}}
