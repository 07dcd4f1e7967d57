"""Airflow's own Stats (StatsD, OpenTelemetry): what each of our tasks took, and the feed's state.

Never the reason why a task fails: a backend that is away is told in the log, and nowhere else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from tallystick.domain.identities import FeedName

if TYPE_CHECKING:
    from tallystick.ledger.ledger import Ledger

log = logging.getLogger(__name__)


@contextmanager
def step_told(feed: str, step: str) -> Iterator[None]:
    """Sends how long the block takes, however it ends: `tallystick.step_duration`, in ms."""
    began = time.monotonic()
    try:
        yield
    finally:
        took = 1000.0 * (time.monotonic() - began)
        tags = {"feed": feed, "step": step}
        _tell(lambda stats: stats.timing("tallystick.step_duration", took, tags=tags))


def tell_committed(feed: str, *, rows: int, length_bytes: int) -> None:
    """Count what a batch has committed: `tallystick.committed_rows` and `_bytes`."""
    tags = {"feed": feed}
    _tell(lambda stats: stats.incr("tallystick.committed_rows", rows, tags=tags))
    _tell(lambda stats: stats.incr("tallystick.committed_bytes", length_bytes, tags=tags))


def tell_feed(ledger: Ledger, feed: str) -> None:
    """Set the feed's gauges, as the ledger has them now; raises what the ledger raises."""
    heads = ledger.feed_heads(FeedName(feed), most_runs=0)
    if not heads:
        return
    head = heads[0]
    up_to = head.complete_up_to
    told: Mapping[str, float | None] = {
        "verdict": head.verdict.severity,
        "lag_offsets": head.lag,
        "complete_up_to_timestamp_seconds": up_to.timestamp() if up_to else None,
        "time_to_loss_seconds": head.seconds_to_loss(datetime.now(UTC)),
        "findings": sum(head.standing.values()),
    }
    tags = {"feed": feed}
    for name, value in told.items():
        if value is not None:
            _tell(partial(_set_gauge, f"tallystick.{name}", value, tags))


def _set_gauge(name: str, value: float, tags: Mapping[str, str], stats: Any) -> None:
    stats.gauge(name, value, tags=tags)


def _tell(call: Callable[[Any], object]) -> None:
    """Call it with Airflow's functions; trouble there is only logged."""
    try:
        call(_airflow_stats())
    except Exception:
        log.warning("Airflow's metrics could not be told.", exc_info=True)


def _airflow_stats() -> Any:
    try:
        from airflow.sdk.observability import stats
    except ImportError:  # Airflow 3.1
        from airflow.stats import Stats

        return Stats
    return stats if hasattr(stats, "timing") else stats.Stats  # 3.2 has a class there
