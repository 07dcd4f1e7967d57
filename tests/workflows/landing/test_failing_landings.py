"""Landings that hang, that only fail, that do not come: none of them is OK."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.domain.batches.paths import LOG_ANSWER_NAME
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.committing import heartbeat
from tallystick.workflows.committing.heartbeat import lease_renewed
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.kafka_topics import wait_until
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import FEED, Story

OWNER = Owner("one")
WHY = "no executors"


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders", partitions=1)
    broker.logs[0].append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def failing(story: Story) -> Services:
    """Services whose Spark reads nothing at all."""
    services = story.services()
    spark = ScriptedSpark(story.broker, services.store)
    spark.unreadable = {(0, offset): WHY for offset in range(100)}
    return replace(services, spark=spark)


def test_a_partition_of_which_nothing_is_landed_while_records_wait_is_not_ok(story: Story) -> None:
    services = story.services(lease=timedelta(minutes=1))
    plan_feed(services, None, OWNER)

    report = reconcile(services)

    assert [each.verdict for each in report.partitions] == [Verdict.UNKNOWN]
    assert report.verdict is Verdict.UNKNOWN
    assert report.has_failed


def test_an_empty_partition_is_ok(ledger_databases: Callable[[], str], tmp_path: Path) -> None:
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders", partitions=1))
    land_feed(story.services(), None, OWNER)

    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_a_batch_that_failed_three_times_is_told_with_the_last_reason(story: Story) -> None:
    services = failing(story)
    for _ in range(2):
        land_feed(services, None, OWNER)
    assert [each.code.value for each in reconcile(services).findings] == []
    land_feed(services, None, OWNER)

    [found] = reconcile(services).findings

    assert (found.code.value, found.verdict) == ("N3", Verdict.UNKNOWN)
    assert (found.partition, found.from_offset, found.until_offset) == (0, 0, 10)
    assert "was tried 3 times, and failed each time. The last reason:" in found.cause
    assert WHY in found.cause


def test_a_failing_batch_that_is_landed_at_last_is_told_no_more(story: Story) -> None:
    services = failing(story)
    for _ in range(3):
        land_feed(services, None, OWNER)
    reconcile(services)

    land_feed(story.services(), None, OWNER)

    healed = reconcile(story.services())
    assert (healed.verdict, healed.findings) == (Verdict.PROVEN_OK, ())


def test_a_try_is_counted_once_and_a_living_one_is_no_failure(story: Story) -> None:
    services = story.services(lease=timedelta(minutes=1))
    [batch] = plan_feed(services, None, OWNER).batches
    for number in range(3):
        services.ledger.begin_attempt(
            batch.batch_id,
            attempt_id=AttemptId(f"{number:016x}"),
            owner=OWNER,
            lease=services.lease,
        )

    [tried] = services.ledger.tried(FEED)

    assert (tried.failures, tried.last_failure, tried.holder) == (2, "", OWNER)
    assert tried.held_seconds is not None
    assert 0 <= tried.held_seconds < 60


def test_a_feed_is_idle_since_its_last_run_and_not_while_a_batch_is_held(story: Story) -> None:
    assert story.services().ledger.idle(FEED) is None
    services = story.services(lease=timedelta(minutes=1))
    plan_feed(services, None, OWNER)
    at_work = services.ledger.idle(FEED)
    land_feed(services, None, OWNER)
    after = services.ledger.idle(FEED)

    assert at_work is not None
    assert at_work < timedelta()
    assert after is not None
    assert timedelta() <= after < timedelta(minutes=1)


def test_the_lease_of_an_attempt_that_hangs_is_renewed_no_more(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = story.services(lease=timedelta(seconds=2))
    now, renewed = [0.0], []
    monkeypatch.setattr(heartbeat, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def noted() -> Ledger:
        ledger = Ledger(story.dsn)
        renew = ledger.renew_lease
        monkeypatch.setattr(ledger, "renew_lease", lambda *how: renewed.append(renew(*how)))
        return ledger

    services = replace(services, second_ledger=noted)
    [batch] = plan_feed(services, None, OWNER).batches
    attempt = services.ledger.begin_attempt(
        batch.batch_id, attempt_id=AttemptId("a" * 16), owner=OWNER, lease=services.lease
    )
    assert attempt

    with lease_renewed(services, attempt):
        name = f"lease of {batch.batch_id}"
        wait_until(lambda: len(renewed) > 1, "the lease is renewed")
        now[0] = services.feed.spark.max_application_time.total_seconds() + 2.1
        wait_until(lambda: name not in [each.name for each in threading.enumerate()], "no more")
        wait_until(
            lambda: services.ledger.batch(batch.batch_id).holder is None, "the lease is over"
        )


def test_what_older_attempts_still_do_is_ended_before_the_next_one_reads(story: Story) -> None:
    broken = failing(story)
    land_feed(broken, None, OWNER)
    [record] = broken.ledger.batches(FEED)
    services = story.services()
    spark = ScriptedSpark(story.broker, services.store)
    ended_before_reading: list[str] = []
    spark.before_write = lambda _: ended_before_reading.extend(spark.interrupted)

    land_feed(replace(services, spark=spark), None, Owner("two"))

    assert ended_before_reading[: len(record.attempts)] == [
        each.attempt.attempt_id for each in record.attempts
    ]


class BrokenAnswers:
    """A store; a defect of ours is met wherever the answer about a log is kept."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, path: str, content: bytes) -> None:
        if path.endswith(LOG_ANSWER_NAME):
            raise TypeError("a defect")
        self._store.write(path, content)


def test_a_defect_in_what_is_done_beside_a_landing_is_told(story: Story) -> None:
    services = story.services()
    broken: Any = BrokenAnswers(services.store)

    with pytest.raises(TypeError, match="a defect"):
        land_feed(replace(services, store=broken), None, OWNER)

    land_feed(services, None, OWNER)
    assert story.published_offsets() == {0: list(range(10))}
