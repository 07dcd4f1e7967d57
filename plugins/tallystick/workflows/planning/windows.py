"""Asks the broker's time index where windows end in each log, for a plan that goes by windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.due import DueOffsets
from tallystick.domain.planning.window_cuts import WindowPiece, window_pieces
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.z5_no_progress import frozen_time_index, may_be_frozen
from tallystick.domain.window import Window
from tallystick.settings.cadence import WindowSchedule
from tallystick.workflows.services import Services

# A producer's clock may be ahead of ours by this much before its records count as from the future.
_CLOCKS_MAY_DIFFER: Final = timedelta(hours=1)


def goes_by_windows(services: Services, window: Window | None) -> bool:
    """True when the run lands what is older than its window's end, each record under its own."""
    return window is not None and services.feed.plan.until == "window_end"


def ends_of(
    services: Services, window: Window | None, snapshot: BrokerSnapshot
) -> Mapping[int, int | None] | None:
    """The first offsets at or after the window's end, by partition; None if no window limits."""
    if window is None or not goes_by_windows(services, window):
        return None
    partitions = tuple(snapshot.partitions)
    return services.broker.offsets_at(services.topic, window.until_instant, partitions)


def own_windows(
    services: Services, window: Window | None, due: DueOffsets
) -> Sequence[WindowPiece] | None:
    """The windows of what is due, oldest first; None where all goes under the run's own."""
    if window is None or not goes_by_windows(services, window):
        return None
    schedule = services.feed.schedule
    borders = WindowSchedule(schedule.cron, schedule.timezone)
    search = window_pieces(due.by_partition(), window, borders)
    try:
        question = next(search)
        while True:
            first = services.broker.offsets_at(
                services.topic, question.instant, question.partitions
            )
            question = search.send(first)
    except StopIteration as found:
        pieces: Sequence[WindowPiece] = found.value
        return pieces


def frozen_findings(
    services: Services,
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    cuts: Mapping[int, int | None] | None,
) -> tuple[Finding, ...]:
    """Partitions in which a record from the future holds up every window (Z5)."""
    doubtful = may_be_frozen(generations, snapshot, services.isolation, cuts or {})
    if not doubtful:
        return ()
    future = services.clock.now() + _CLOCKS_MAY_DIFFER
    after_now = services.broker.offsets_at(services.topic, future, doubtful)
    return frozen_time_index(
        services.feed_name,
        generations,
        snapshot,
        isolation=services.isolation,
        cuts=cuts or {},
        after_now=after_now,
    )
