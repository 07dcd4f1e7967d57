"""A root that somebody has moved: the ledger takes its new place on record, and lands nothing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import RepairRefused
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.moved_root import MovedReport, enter_moved
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

ADA = Owner("ada")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two batches, whose root was moved since."""
    broker = ScriptedBroker("orders", partitions=1)
    story = a_landed_story(ledger_databases(), tmp_path / "store", 10, 10, broker=broker)
    (story.directory / "landing").rename(story.directory / "moved")
    return story


def services_of(story: Story) -> Services:
    """The feed's file follows."""
    services = story.services()
    target = services.feed.target.model_copy(update={"root": "/moved"})
    return replace(services, feed=services.feed.model_copy(update={"target": target}))


def entered(story: Story, *, dry_run: bool = False) -> MovedReport:
    return enter_moved(services_of(story), "/landing", "/moved/", ADA, dry_run=dry_run)


def test_a_whole_root_is_entered_and_reconcile_is_clean_again(story: Story) -> None:
    services = services_of(story)
    found = reconcile(services).findings
    assert {each.code.value for each in found} == {"A8", "A9"}
    missing = [each.next_step for each in found if each.code.value == "A8"]
    assert all("repair orders --moved /landing NEW" in each for each in missing)
    assert not repair_feed(services, (), ADA).batches

    dry = entered(story, dry_run=True)
    assert reconcile(services).findings
    report = entered(story)
    assert (report.moved, report.left) == (dry.moved, {})
    assert len(report.moved) == 2

    assert reconcile(services).findings == ()
    assert services.ledger.findings(FEED) == []
    assert services.ledger.roots(FEED) == ["/moved"]
    assert services.ledger.roots(FEED, with_former=True) == ["/landing", "/moved"]
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    assert not land_feed(services, None, ADA).errors
    assert reconcile(services).findings == ()
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        rows = hand.execute("SELECT from_root, to_root, moved_by, moved_at FROM moved_batch")
        assert {row[:3] for row in rows.fetchall()} == {("/landing", "/moved", "ada")}


def test_only_what_lies_there_whole_is_entered(story: Story) -> None:
    file = sorted((story.directory / "moved" / FEED).rglob("*.parquet"))[0]
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"x")

    report = entered(story)
    assert len(report.moved) == 1
    [(directory, reason)] = report.left.items()
    assert directory.startswith("/landing/")
    assert "is not the file that was committed" in reason
    file.write_bytes(content)
    assert len(entered(story).moved) == 1
    assert reconcile(services_of(story)).findings == ()


def test_a_copy_is_no_move(story: Story) -> None:
    (story.directory / "moved").rename(story.directory / "landing")
    report = entered(story)
    assert report.moved == []
    assert set(report.left.values()) == {"it is still in its place."}


@pytest.mark.parametrize("old", ["/nowhere", "/moved"])
def test_a_root_without_a_batch_is_refused(story: Story, old: str) -> None:
    with pytest.raises(RepairRefused, match="no batch below"):
        enter_moved(services_of(story), old, "/moved", ADA, dry_run=False)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batch SET root = '/moved'",
        "INSERT INTO moved_batch SELECT batch_id, root, '/moved', 'ada' FROM batch",
        "INSERT INTO moved_batch SELECT batch_id, '/else', '/moved', 'ada' FROM batch;"
        "UPDATE batch SET root = '/moved'",
        "INSERT INTO moved_batch SELECT batch_id, root, '/moved', 'ada' FROM batch;"
        "UPDATE batch SET root = '/moved', published_by = 'ada'",
    ],
)
def test_the_schema_refuses_a_place_without_its_record_and_a_record_without_its_place(
    story: Story, statement: str
) -> None:
    def by_hand() -> None:
        with closing(psycopg.connect(story.dsn, user=OWNER_ROLE)) as hand:
            hand.execute(statement.encode())
            hand.commit()

    with pytest.raises(psycopg.DatabaseError, match=r"never changes|does not lie below"):
        by_hand()
