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

    crumbs = [
        {"task_id": "plan", "map_index": -1, "state": "success"},
        {"task_id": "batch.land", "map_index": 0, "state": "skipped"},
        {"task_id": "batch.land", "map_index": 1, "state": "failed"},
        {"task_id": "batch.commit_and_publish", "map_index": 1, "state": "upstream_failed"},
        {"task_id": "check", "map_index": -1, "state": "failed"},
    ]
    ti = SimpleNamespace(
        dag_id="d", run_id="r", task_id="check", get_task_breadcrumbs=lambda dag, run: iter(crumbs)
    )
    assert failed_tasks({"ti": ti}) == [
        "batch.land[1] (failed)",
        "batch.commit_and_publish[1] (upstream_failed)",
    ]
