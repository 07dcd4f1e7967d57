"""What a task learns of its run: the window, who owns its batches, what has failed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError, WindowIncomplete

SIX = datetime(2026, 11, 1, 6, tzinfo=UTC)
SEVEN = datetime(2026, 11, 1, 7, tzinfo=UTC)
ELSEWHERE = timezone(timedelta(hours=2))


def a_context(
    interval: tuple[datetime, datetime] | None = None, **params: object
) -> Mapping[str, Any]:
    context: dict[str, Any] = {"params": params}
    if interval:
        context["data_interval_start"], context["data_interval_end"] = interval
    return context


def test_a_window_consists_of_pythons_own_instants() -> None:
    import pendulum

    from tallystick.orchestration.run_context import window_of

    six = pendulum.instance(SIX).in_timezone("Europe/Berlin")
    window = window_of("orders", a_context((six, six.add(hours=1))))

    assert window == Window(SIX, SEVEN)
    assert window
    assert {type(window.from_instant), type(window.until_instant)} == {datetime}


@pytest.mark.parametrize(
    ("context", "window"),
    [
        pytest.param(a_context(), None, id="by hand, without an interval"),
        pytest.param(a_context((SIX, SEVEN)), Window(SIX, SEVEN), id="scheduled or backfill"),
        pytest.param(
            a_context((SIX, SEVEN), window_start=None, window_end=None, dry_run=False),
            Window(SIX, SEVEN),
            id="the form left as it is",
        ),
        pytest.param(
            a_context(window_start="2026-11-01T06:00:00Z", window_end="2026-11-01T07:00:00+00:00"),
            Window(SIX, SEVEN),
            id="the form's window",
        ),
        pytest.param(
            a_context(
                (SEVEN, SEVEN + timedelta(hours=1)),
                window_start="2026-11-01T07:00:00+01:00",
                window_end="2026-11-01T08:00:00+01:00",
            ),
            Window(SIX, SEVEN),
            id="the form's window goes before the interval, in UTC",
        ),
        pytest.param(
            a_context((SIX.astimezone(ELSEWHERE), SEVEN.astimezone(ELSEWHERE))),
            Window(SIX, SEVEN),
            id="an interval elsewhere on the globe",
        ),
    ],
)
def test_window_of_a_run(context: Mapping[str, Any], window: Window | None) -> None:
    from tallystick.orchestration.run_context import window_of

    assert window_of("orders", context) == window


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        pytest.param(
            {"window_start": "2026-11-01T06:00:00Z"}, WindowIncomplete, "window_end", id="no end"
        ),
        pytest.param(
            {"window_end": "2026-11-01T06:00:00Z"}, WindowIncomplete, "window_start", id="no start"
        ),
        pytest.param(
            {"window_start": "2026-11-01T07:00:00Z", "window_end": "2026-11-01T06:00:00Z"},
            ConfigurationError,
            "an instant after 2026-11-01T07:00:00+00:00",
            id="backwards",
        ),
        pytest.param(
            {"window_start": "2026-11-01T06:00:00Z", "window_end": "2026-11-01T06:00:00Z"},
            ConfigurationError,
            "an instant after",
            id="empty",
        ),
        pytest.param(
            {"window_start": "2026-11-01T06:00:00", "window_end": "2026-11-01T07:00:00Z"},
            ConfigurationError,
            "with its time zone",
            id="no time zone",
        ),
        pytest.param(
            {"window_start": "yesterday", "window_end": "2026-11-01T07:00:00Z"},
            ConfigurationError,
            "'yesterday'",
            id="no instant",
        ),
    ],
)
def test_a_wrong_window_is_refused_for_good(
    params: dict[str, str], error: type[ConfigurationError], words: str
) -> None:
    from tallystick.orchestration.run_context import window_of

    with pytest.raises(error, match="feed orders") as caught:
        window_of("orders", a_context(**params))
    assert words in str(caught.value)
    assert not caught.value.retry


def test_all_tasks_and_tries_of_a_run_are_one_owner() -> None:
    from tallystick.orchestration.run_context import owner_of

    tries = [
        SimpleNamespace(dag_id="ingest_orders", run_id="manual__1", task_id=task, try_number=number)
        for task, number in (("plan", 1), ("batch.land", 1), ("batch.land", 2))
    ]
    assert {owner_of({"ti": ti}) for ti in tries} == {"ingest_orders/manual__1"}


def test_failed_tasks_are_named_with_their_map_index() -> None:
    from tallystick.orchestration.run_context import failed_tasks

    states = {
        "plan": "success",
        "finish": None,
        "batch.land_0": "skipped",
        "batch.land_10": "failed",
        "batch.land_9": "failed",
        "batch.commit_and_publish_9": "upstream_failed",
        "announce": "upstream_failed",
        "check": "failed",
    }
    tasks = ("plan", "finish", "batch.land", "batch.commit_and_publish", "announce", "check")
    ti = SimpleNamespace(
        dag_id="d", run_id="r", task_id="check", get_task_states=lambda **_: {"r": states}
    )
    dag = SimpleNamespace(task_dict=dict.fromkeys(tasks))
    assert failed_tasks({"ti": ti, "dag": dag}) == [
        "announce (upstream_failed)",
        "batch.commit_and_publish[9] (upstream_failed)",
        "batch.land[9] (failed)",
        "batch.land[10] (failed)",
    ]
