"""What a task is told of its run by Airflow's context: the window, the owner, what has failed.

And what it tells the page of its run: what a dry run would do, and why a try has failed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

from tallystick.domain.identities import Owner
from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError, IngestionError, RunParameterUnknown
from tallystick.orchestration.airflow_releases import AirflowException
from tallystick.orchestration.page_link import page_of_run
from tallystick.report.safe_text import as_called
from tallystick.report.wording import with_capital

log = logging.getLogger(__name__)

Context = Mapping[str, Any]
SHOWN: Final = "dry_run"
"""The XCom's key."""
FAILED_AS: Final = "failed_as"
"""The same of the sentence with which a try has failed."""
MOST_LINES: Final = 200
_LONGEST: Final = 2_000
_INSTANT: Final = "an instant with its time zone, such as 2026-11-01T06:00:00Z"
_FAILED: Final = ("failed", "upstream_failed")


def owner_of(context: Context) -> Owner:
    """The run, as holder of its batches: all its tasks and their tries are one owner.

    So a batch planned by this run is not busy for it, and a try after a kill takes over at once.
    """
    ti = context["ti"]
    return Owner(f"{ti.dag_id}/{ti.run_id}")


def require_known_conf(context: Context) -> None:
    """Refuse a configuration that would be dropped in silence; Airflow itself takes every key.

    Raises RunParameterUnknown for a key that the DAG's form does not have, and ConfigurationError
    when Airflow is set to ignore what the run was given.
    """
    dag_id, known = context["dag"].dag_id, list(context["dag"].params)
    conf: Mapping[str, Any] = context["dag_run"].conf or {}
    for key in conf:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            others = f"nearest known: {near[0]}" if near else f"known: {', '.join(known) or 'none'}"
            raise RunParameterUnknown(key, None, others, where=f"DAG {dag_id}")
    if any(context["params"][key] != value for key, value in conf.items()):
        raise ConfigurationError(
            "core.dag_run_conf_overrides_params",
            False,
            "True, or a run's configuration is ignored, a dry run's too",
            where="Airflow",
        )


def is_dry_run(context: Context) -> bool:
    """True if the form asks to change nothing."""
    return bool(context["params"].get("dry_run"))


def window_of(feed: str, context: Context) -> Window | None:
    """The form's window, else the run's data interval; None when the run has neither.

    Raises WindowIncomplete for half a window, ConfigurationError for an empty one.
    """
    given = _window(feed, context["params"], ("window_start", "window_end"))
    # A run by hand without a logical date has no interval: then these keys are missing.
    return given or _window(feed, context, ("data_interval_start", "data_interval_end"))


def _window(feed: str, given: Mapping[str, Any], names: tuple[str, str]) -> Window | None:
    start, end = (given.get(each) for each in names)
    return Window.between(
        names,
        instant_of(feed, names[0], start) if start else None,
        instant_of(feed, names[1], end) if end else None,
        where=f"feed {feed}",
    )


def failed_tasks(context: Context) -> list[str]:
    """The tasks of this run that have failed, or could not start because another one had."""
    mine, whole = context["ti"].task_id, context["dag"].task_dict
    found = []
    for name, state in _states(context).items():
        if state in _FAILED and name != mine:
            task_id, _, index = (name, "", "-1") if name in whole else name.rpartition("_")
            found.append((task_id, int(index), state))
    return [
        f"{task_id}{'' if index < 0 else f'[{index}]'} ({state})"
        for task_id, index, state in sorted(found)
    ]


def state_of(task_id: str, context: Context) -> str | None:
    """The state of a task of this run, one that is not mapped; None while it has none."""
    return _states(context).get(task_id)


def _states(context: Context) -> Mapping[str, str | None]:
    """The state of each task of this run by name; Airflow adds _INDEX to that of a mapped one."""
    ti = context["ti"]
    found: Mapping[str, Mapping[str, str | None]] = ti.get_task_states(
        dag_id=ti.dag_id, run_ids=[ti.run_id]
    )
    return found.get(ti.run_id, {})


def instant_of(feed: str, name: str, value: datetime | str) -> datetime:
    """The instant in UTC, in Python's own type: what Airflow gives calculates in pendulum's way.

    Raises ConfigurationError, which calls it by this name, for what is no instant.
    """
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ConfigurationError(name, str(value), _INSTANT, where=f"feed {feed}")
    return datetime.fromisoformat(found.astimezone(UTC).isoformat())


def show_dry_run(context: Context, lines: Iterable[tuple[int, str]], **of_repair: object) -> None:
    """Log each line at its level, and keep the first of them for the page of the run.

    An XCom is where they are kept: the ledger records nothing of a dry run. The digests of a
    repair's evidence stand beside them: what is then done is done of that alone.
    """
    told = list(lines)
    for level, words in told:
        log.log(level, "%s", words)
    kept = [
        {"text": words[:_LONGEST], "is_warning": level >= logging.WARNING}
        for level, words in told[:MOST_LINES]
    ]
    value = {"lines": kept, "left_out": len(told) - len(kept), **of_repair}
    context["ti"].xcom_push(key=SHOWN, value=value)


def keep_sentence(context: Context) -> None:
    """Keep with which sentence a try has failed, for the page of its run; Airflow calls this.

    An XCom, which outlives a ledger that does not answer, and which Airflow drops when the task
    starts again. Of a task that was killed there is none: nothing of ours has ended it.
    """
    error, ti = context.get("exception"), context["ti"]
    if not isinstance(error, BaseException):
        return
    is_said = isinstance(error, IngestionError | AirflowException | SystemExit)
    # Another's words may hold a secret, which Airflow masks in logs only.
    words = as_called(str(error)) if is_said else f"a defect, {type(error).__name__}."
    words = words.removesuffix(f": {page_of_run(ti.dag_id, ti.run_id)}")
    ti.xcom_push(key=FAILED_AS, value={"sentence": with_capital(words)[:_LONGEST]})
