"""A window is aware, in UTC, and never empty."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from tallystick.domain.window import Window
from tests.support.builders import NOON

HOUR = timedelta(hours=1)
BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    ("from_instant", "until_instant", "why"),
    [
        pytest.param(NOON, NOON, "is empty", id="empty"),
        pytest.param(NOON, NOON - HOUR, "is empty", id="backwards"),
        pytest.param(NOON.replace(tzinfo=None), NOON + HOUR, "is not in UTC", id="start naive"),
        pytest.param(NOON, (NOON + HOUR).replace(tzinfo=None), "is not in UTC", id="end naive"),
        pytest.param(NOON.astimezone(BERLIN), NOON + HOUR, "is not in UTC", id="start elsewhere"),
        pytest.param(NOON, (NOON + HOUR).astimezone(BERLIN), "is not in UTC", id="end elsewhere"),
    ],
)
def test_a_bad_window_is_refused(from_instant: datetime, until_instant: datetime, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Window(from_instant, until_instant)


def test_windows_order_by_their_start() -> None:
    first, second = Window(NOON, NOON + 2 * HOUR), Window(NOON + HOUR, NOON + 2 * HOUR)

    assert sorted([second, first]) == [first, second]


def test_a_window_reads_as_half_open() -> None:
    window = Window(NOON, NOON + HOUR)

    assert str(window) == "[2026-11-01T12:00:00+00:00, 2026-11-01T13:00:00+00:00)"
    assert window.from_instant.tzinfo is UTC
