"""What is said of a feed between two reports."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.report.standing import seconds_to_loss, verdict_now
from tallystick.domain.verdicts import Verdict

NOW = datetime(2026, 11, 8, 12, tzinfo=UTC)
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("reported", "standing", "now"),
    [
        (None, [], Verdict.UNKNOWN),
        (None, [Verdict.PROVEN_LOSS], Verdict.PROVEN_LOSS),
        (Verdict.PROVEN_OK, [], Verdict.PROVEN_OK),
        (Verdict.UNKNOWN, [], Verdict.UNKNOWN),
        (Verdict.UNKNOWN, [Verdict.SUSPECTED], Verdict.UNKNOWN),
        (Verdict.PROVEN_LOSS, [], Verdict.PROVEN_OK),
        (Verdict.PROVEN_LOSS, [Verdict.WAIVED], Verdict.WAIVED),
        (Verdict.PROVEN_OK, [Verdict.WAIVED, Verdict.PROVEN_DUP], Verdict.PROVEN_DUP),
    ],
)
def test_what_stands_is_told_and_what_only_a_report_could_say(
    reported: Verdict | None, standing: list[Verdict], now: Verdict
) -> None:
    assert verdict_now(reported, standing) is now


@pytest.mark.parametrize(
    ("hours_ago", "retention_ms", "lag", "seconds"),
    [
        (1, 3 * HOUR_MS, 5, 7200.0),
        (1, 3 * HOUR_MS, 0, None),
        (1, 3 * HOUR_MS, None, None),
        (1, None, 5, None),
        (None, 3 * HOUR_MS, 5, None),
        (3, 3 * HOUR_MS, 5, None),
    ],
)
def test_the_time_to_a_loss_is_a_least_one_or_none(
    hours_ago: int | None, retention_ms: int | None, lag: int | None, seconds: float | None
) -> None:
    up_to = None if hours_ago is None else NOW - timedelta(hours=hours_ago)
    assert seconds_to_loss(up_to, retention_ms, lag, NOW) == seconds
