"""The DAG `reconcile_<feed>`: asks ledger, broker and HDFS again, and fails when they disagree."""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import DAG, CronTriggerTimetable, task
from airflow.sdk.exceptions import AirflowException

from tallystick.domain.findings import FindingCode
from tallystick.orchestration.connections import services_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.ingest import RETRIES, TAG
from tallystick.settings.feed import Feed
from tallystick.workflows import checking, reconciliation

log = logging.getLogger(__name__)


def reconcile_dag(feed: Feed) -> DAG:
    """The feed's second DAG, on its own schedule; it changes nothing but findings on record."""
    with DAG(
        dag_id=f"reconcile_{feed.name}",
        schedule=CronTriggerTimetable(feed.reconcile.cron, timezone=feed.schedule.timezone),
        start_date=feed.schedule.start_date,
        catchup=False,
        max_active_runs=1,
        default_args=RETRIES,
        tags=[TAG, "reconcile"],
        description=f"Compares what was landed of {feed.source.topic} with broker and ledger",
        doc_md=_WORDS.format(feed=feed.name, topic=feed.source.topic),
    ) as dag:

        @task(task_id="reconcile")
        def run() -> dict[str, Any]:
            return reconcile(feed)

        run()
    return dag


def reconcile(feed: Feed) -> dict[str, Any]:
    """Verdict and number of findings; the report itself is in the log.

    What is found fails at once: a suspicion, too. When the only trouble is a witness that did not
    answer, raises AirflowException: that may pass, so Airflow asks again.
    """
    with in_airflow_terms(), services_of(feed) as services:
        report = reconciliation.reconcile(services)
        heard = [each for each in report.findings if each.code is not FindingCode.COULD_NOT_TELL]
        checking.require_clean(feed.name, heard)
        if not report.is_complete:
            raise AirflowException(
                f"Feed {feed.name}: a witness did not answer, so a part of the report is UNKNOWN."
                " The log above names it; Airflow asks again."
            )
    return {"verdict": report.verdict.value, "findings": len(report.findings)}


_WORDS = """\
Compares three witnesses of `{topic}`: the ledger, the broker and HDFS (levels L0 to L2). The log of
the task ends with the report: each partition's range, verdict, rows, proven holes and lag, then
every finding with its cause and the next step. `./tallystick reconcile {feed}` says the same.

Fails on what is lost, doubled, unknown or suspicious.
"""
