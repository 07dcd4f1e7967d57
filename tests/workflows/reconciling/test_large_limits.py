"""Kafka takes limits up to 2^63 - 1, and people set them for "keep it for ever"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of, store_report
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, MinuteByMinute
from tests.support.story import Story

FOR_EVER = 2**63 - 1


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = MinuteByMinute("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def services_of(story: Story) -> Services:
    assert isinstance(story.broker, MinuteByMinute)
    return replace(story.services(), clock=story.broker)


@pytest.mark.parametrize("by", ["age", "size"])
def test_a_topic_that_keeps_all_for_ever_is_landed_and_reconciled(story: Story, by: str) -> None:
    if by == "age":
        story.broker.retention_ms = FOR_EVER
    else:
        story.broker.retention_bytes = FOR_EVER
    assert not land_feed(services_of(story), None, Owner("one")).errors
    story.broker.logs[0].append(Kind.RECORD, 1)

    report = reconcile(services_of(story))
    store_report(services_of(story), report_of(services_of(story), report))

    assert report.verdict is Verdict.PROVEN_OK


def test_an_almost_idle_topic_with_a_large_limit_is_reconciled(story: Story) -> None:
    story.broker.retention_bytes = 10**12
    assert not land_feed(services_of(story), None, Owner("one")).errors
    story.broker.minutes += 24 * 60  # type: ignore[attr-defined]
    story.broker.logs[0].append(Kind.RECORD, 1)

    assert reconcile(services_of(story)).verdict is Verdict.PROVEN_OK


def test_a_topic_that_is_far_over_its_size_is_reported(story: Story) -> None:
    """The broker deletes whole segments, and late: much may be unread beyond a small limit."""
    story.broker.retention_bytes = 1
    assert not land_feed(services_of(story), None, Owner("one")).errors
    story.broker.minutes += 24 * 60  # type: ignore[attr-defined]
    story.broker.logs[0].append(Kind.RECORD, 1)
    heads = story.broker.batch_heads
    story.broker.batch_heads = lambda topic, offsets: {  # type: ignore[method-assign]
        number: replace(each, byte_count=10**9) for number, each in heads(topic, offsets).items()
    }

    report = reconcile(services_of(story))
    store_report(services_of(story), report_of(services_of(story), report))

    assert report.verdict is Verdict.SUSPECTED
