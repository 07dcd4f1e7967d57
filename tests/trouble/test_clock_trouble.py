"""Clocks that run backwards: the wall clock of a run, and the clock of the ledger's server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg

from tallystick.domain.identities import Owner
from tallystick.domain.window import Window
from tallystick.workflows.planning.plan import plan_feed
from tests.trouble.scene import Scene


class BackwardsClock:
    """Every look at it shows an earlier hour than the one before."""

    def __init__(self, begin: datetime) -> None:
        self._now = begin

    def now(self) -> datetime:
        self._now -= timedelta(hours=1)
        return self._now

    def pause(self, seconds: float) -> None:
        return None


def test_a_run_s_clock_goes_backwards(scene: Scene) -> None:
    clock = BackwardsClock(datetime(2026, 11, 1, 2, tzinfo=UTC))
    for _ in range(3):
        scene.landed(clock=clock)
        scene.produce(5)
    scene.recovers(clock=clock)


def test_a_run_s_clock_goes_back_behind_a_window(scene: Scene) -> None:
    """Windows cut by the broker's time index; our own clock only judges what is in the future."""
    until = datetime.now(UTC) + timedelta(minutes=10)
    window = Window(until - timedelta(hours=1), until)
    feed = scene.feed(plan={"until": "window_end"})
    scene.landed(feed=feed, window=window, clock=BackwardsClock(datetime(1970, 1, 2, tzinfo=UTC)))
    assert len(scene.rows()) == scene.count
    scene.produce(5)
    scene.recovers(feed=feed, window=window)


def test_the_ledger_s_clock_is_set_back(scene: Scene) -> None:
    """Leases then last longer, and that is all: new offsets land meanwhile."""
    with scene.services() as services:
        plan_feed(services, None, Owner("a run that died"))
    with psycopg.connect(scene.environ["LEDGER_DSN"]) as ledger:
        ledger.execute("UPDATE batch SET lease_until = lease_until + interval '1 hour'")
    scene.produce(5)
    report = scene.landed()
    [held] = report.plan.held
    assert held.lease_seconds_left > 3500
    assert [each.offset for each in scene.rows()] == list(range(10, 15))
    scene.let_leases_run_out()
    scene.recovers()
