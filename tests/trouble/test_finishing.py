"""One batch that can't be published holds up neither the other ones nor what is new."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import Owner
from tallystick.errors import StorageRefused, TargetOccupied
from tallystick.workflows.landing.run import land_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story
from tests.trouble.scene import Before


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 8)
    return Story(ledger_databases(), tmp_path, broker)


def refuse() -> NoReturn:
    raise StorageRefused("/landing/orders", "the name quota is used up")


def test_a_foreign_directory_at_one_target_holds_up_nothing_else(story: Story) -> None:
    services = story.services(max_records_per_batch=8)
    services = replace(services, store=Before("rename_exclusive", refuse)(services.store))
    report = land_feed(services, None, Owner("one"))
    assert [type(each) for each in report.errors] == [StorageRefused, StorageRefused]
    assert [each.commit and each.commit.record_count for each in report.batches] == [8, 8]
    assert story.published_offsets() == {}

    services = story.services(max_records_per_batch=8)
    first, _ = services.ledger.unpublished(FEED)
    target = story.directory / str(BatchPath.of(first.plan)).lstrip("/")
    target.mkdir(parents=True)
    (target / "somebody-else.txt").write_text("ours")
    story.broker.logs[1].append(Kind.RECORD, 3)
    report = land_feed(services, None, Owner("two"))

    [error] = report.errors
    assert isinstance(error, TargetOccupied)
    assert str(error).startswith(f"feed orders, at publish, batch {first.plan.batch_id}, orders-0")
    assert [each.directory is not None for each in report.batches] == [True]
    assert story.published_offsets() == {1: list(range(11))}
    assert [each.plan.batch_id for each in services.ledger.unpublished(FEED)] == [
        first.plan.batch_id
    ]
