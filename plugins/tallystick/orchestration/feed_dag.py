"""What all DAGs of a feed share: id, tags and owner, how often a task is tried, a known conf."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from airflow.sdk import DAG, Param

from tallystick.orchestration.airflow_releases import BACKOFF_BY_TWO
from tallystick.orchestration.dag_ids import TAG, dag_id_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.run_context import Context, keep_sentence, require_known_conf
from tallystick.settings.feed import FeedFile
from tallystick.settings.labels import OWNER, RUNBOOK

_NOBODY: Final = "tallystick"


def _refuse_unknown_conf(context: Context) -> None:
    with in_airflow_terms():
        require_known_conf(context)


# Errors that no retry can mend fail at once, so retries are for what passes: a broker that
# restarts. The configuration is asked before each task, because some run after others have failed.
_TASK_DEFAULTS: Final[dict[str, Any]] = {
    "pre_execute": _refuse_unknown_conf,
    "retries": 2,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": BACKOFF_BY_TWO,
    "max_retry_delay": timedelta(minutes=10),
    "on_retry_callback": keep_sentence,
    "on_failure_callback": keep_sentence,
}


def feed_dag(
    kind: str,
    feed: FeedFile,
    *,
    words: str,
    task_defaults: dict[str, Any] | None = None,
    **more: Any,
) -> DAG:
    """The feed's DAG of this kind, without tasks; the feed's labels are its owner and its tags."""
    marks = [f"{name}:{value}" for name, value in feed.labels.items() if name != RUNBOOK]
    runbook = feed.labels.get(RUNBOOK)
    return DAG(
        dag_id=dag_id_of(kind, feed.name),
        start_date=feed.schedule.start_date,
        catchup=False,
        default_args={
            "owner": feed.labels.get(OWNER, _NOBODY),
            **_TASK_DEFAULTS,
            **(task_defaults or {}),
        },
        tags=[TAG, kind, *marks],
        doc_md=f"{words}\n[Runbook](<{runbook}>)\n" if runbook else words,
        **more,
    )


def feed_param(words: str) -> Param:
    """The field of a shared DAG's form that names one of its feeds."""
    return Param(None, type=["null", "string"], title="Feed", description=words)
