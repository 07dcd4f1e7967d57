"""The sensor that waits for proof, and its trigger: on a real ledger, which may be silent."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.window import Window
from tallystick.workflows.landing.run import land_feed
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import Story, a_feed, a_landed_story

SOON = 0.1
HOUR = timedelta(hours=1)
BEFORE = NOW - timedelta(hours=1)
AFTER = NOW + timedelta(hours=1)
DEAD = "host=127.0.0.1 port=1 dbname=nobody user=nobody"


@pytest.fixture
def landed(
    ledger_databases: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Story:
    story = a_landed_story(ledger_databases(), tmp_path, 10)
    _connect(monkeypatch, story.dsn)
    return story


@pytest.fixture
def unlanded(
    ledger_databases: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Story:
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 5)
    story = Story(ledger_databases(), tmp_path, broker)
    _connect(monkeypatch, story.dsn)
    return story


def _connect(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    said = json.dumps({"conn_type": "postgres", "extra": {"dsn": dsn}})
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_DEFAULT", said)


def _sensor(at: object, **more: Any) -> Any:
    from tallystick.orchestration.complete_sensor import FeedCompleteSensor

    return FeedCompleteSensor(task_id="proof", feed="orders", at=at, poke_interval=SOON, **more)


def _trigger(at: datetime) -> Any:
    from tallystick.orchestration.complete_trigger import FeedCompleteTrigger

    return FeedCompleteTrigger("orders", at.isoformat(), SOON)


async def _first_event(trigger: Any) -> dict[str, Any]:
    async for event in trigger.run():
        return dict(event.payload)
    raise AssertionError("the trigger has ended without an event")


def _fired(trigger: Any, seconds: float = 20) -> dict[str, Any]:
    return asyncio.run(asyncio.wait_for(_first_event(trigger), seconds))


def test_a_feed_that_is_complete_is_not_waited_for(landed: Story) -> None:
    assert _sensor(BEFORE).execute({}) == NOW.isoformat()
    assert _sensor(BEFORE.isoformat()).execute({}) == NOW.isoformat()


def test_a_feed_that_is_not_complete_yet_is_waited_for_without_a_slot(landed: Story) -> None:
    from airflow.sdk.exceptions import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        _sensor(AFTER, timeout=77).execute({})
    assert deferred.value.timeout == timedelta(seconds=77)
    path, kwargs = deferred.value.trigger.serialize()
    assert path == "tallystick.orchestration.complete_trigger.FeedCompleteTrigger"
    assert kwargs == {"feed": "orders", "at": AFTER.isoformat(), "poke_interval": SOON}


def test_the_trigger_fires_at_proof_and_not_before(landed: Story) -> None:
    with pytest.raises(TimeoutError):
        _fired(_trigger(AFTER), seconds=1)
    assert _fired(_trigger(NOW))["complete_up_to"] == NOW.isoformat()


@pytest.mark.parametrize("turns", range(6))
def test_a_trigger_that_is_cancelled_while_an_answer_arrives_is_over(turns: int) -> None:
    from tallystick.orchestration.complete_trigger import _within

    async def story() -> bool:
        asked: Future[Any] = Future()
        waiting = asyncio.create_task(_within(asked, 60))
        await asyncio.sleep(0.01)
        asked.set_result("not yet")
        for _ in range(turns):
            await asyncio.sleep(0)
        is_cancelled = waiting.cancel()
        await asyncio.wait([waiting])
        return waiting.cancelled() == is_cancelled

    assert asyncio.run(story())


def test_a_feed_of_which_nothing_is_landed_holds_the_trigger_until_it_is(unlanded: Story) -> None:
    with pytest.raises(TimeoutError):
        _fired(_trigger(NOW), seconds=1)
    land_feed(unlanded.services(), None, Owner("later"))
    assert _fired(_trigger(NOW))["complete_up_to"] == NOW.isoformat()


def test_the_trigger_outlives_a_silent_ledger(
    landed: Story, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> dict[str, Any]:
        _connect(monkeypatch, DEAD)
        waiting = asyncio.create_task(_first_event(_trigger(BEFORE)))
        while "is asked again" not in caplog.text:
            await asyncio.sleep(0.05)
        assert not waiting.done()
        _connect(monkeypatch, landed.dsn)
        return await asyncio.wait_for(waiting, 20)

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(story())["complete_up_to"] == NOW.isoformat()


def test_a_ledger_that_never_answers_is_asked_by_one_thread_alone(
    landed: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallystick.orchestration import complete_trigger

    asked: list[object] = []
    really = complete_trigger.patient_ledger

    def counted(*args: Any) -> Any:
        asked.append(args)
        return really(*args)

    monkeypatch.setattr(complete_trigger, "patient_ledger", counted)
    with psycopg.connect(landed.dsn, user=OWNER_ROLE) as hand:
        hand.execute("LOCK TABLE finding")
        with pytest.raises(TimeoutError):
            _fired(_trigger(BEFORE), seconds=3)
    assert len(asked) == 1
    assert _fired(_trigger(BEFORE))["complete_up_to"] == NOW.isoformat()


def test_what_no_further_question_mends_fails_the_sensor(
    landed: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with psycopg.connect(landed.dsn, user=OWNER_ROLE) as hand:
        hand.execute("INSERT INTO schema_version VALUES (99, 'of the future')")
    told = _fired(_trigger(BEFORE))
    assert "schema 99" in told["error"]
    with pytest.raises(AirflowFailException, match="schema 99"):
        _sensor(BEFORE).execute_complete({}, told)
    monkeypatch.delenv("AIRFLOW_CONN_LEDGER_DEFAULT")
    with pytest.raises(AirflowFailException, match="ledger_default"):
        _sensor(BEFORE).execute({})


def test_a_name_that_no_feed_has_fails_at_once(landed: Story) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    sensor = _sensor(BEFORE)
    sensor.feed = "ordres"
    with pytest.raises(AirflowFailException, match="nearest: orders"):
        sensor.execute({})


@pytest.mark.parametrize("at", ["", "yesterday", "2026-11-01T06:00:00"])
def test_what_is_no_instant_fails_at_once(landed: Story, at: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    with pytest.raises(AirflowFailException, match="with its time zone"):
        _sensor(at).execute({})


def test_a_wait_ends_so_long_after_the_instant(landed: Story) -> None:
    from airflow.sdk.exceptions import AirflowSensorTimeout, TaskDeferred

    now = datetime.now(UTC)
    with pytest.raises(AirflowSensorTimeout, match="in time"):
        _sensor(now - timedelta(hours=3), within=timedelta(hours=2)).execute({})
    with pytest.raises(TaskDeferred) as deferred:
        _sensor(now - timedelta(hours=1), within=timedelta(hours=2)).execute({})
    assert timedelta(minutes=59) < deferred.value.timeout <= timedelta(hours=1)


def test_a_wait_of_another_kind_is_refused_with_what_is_accepted() -> None:
    from tallystick.errors import ConfigurationError

    with pytest.raises(
        ConfigurationError, match=r"feed orders: within is 60; .*datetime.timedelta"
    ):
        _sensor(BEFORE, within=60)


def test_sensor_and_event_tell_what_came_late(unlanded: Story) -> None:
    from tallystick.orchestration.last_tasks import announce_complete, complete_asset_of

    end = NOW.replace(minute=0)
    unlanded.broker.logs[0].entries.clear()
    for at in (BEFORE, end - timedelta(hours=2), end):
        unlanded.broker.logs[0].append(Kind.RECORD, 1, at=at)
    land_feed(unlanded.services(until="window_end"), Window(end - HOUR, end), Owner("one"))

    said = _fired(_trigger(end - HOUR))["said"]

    assert "Late rows from before 2026-11-01 11:00:00Z: 1 at most" in said
    asset, event = complete_asset_of("orders"), SimpleNamespace(extra=None)
    told = SimpleNamespace(extra={"window_end": (end - HOUR).isoformat()}, timestamp=NOW)
    context: Any = {
        "params": {}, "inlet_events": {asset: [told]}, "outlet_events": {asset: event},
    }  # fmt: skip
    announce_complete(a_feed(until="window_end"), context)
    assert event.extra
    assert (event.extra["window_end"], event.extra["late_rows"]) == (end.isoformat(), 1)
