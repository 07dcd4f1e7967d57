"""The DAG `reconcile_<feed>`: asks ledger, broker and HDFS again, and fails when they disagree."""

from __future__ import annotations

import logging
from typing import Any, Final

from airflow.sdk import DAG, Asset
from airflow.sdk.bases.xcom import BaseXCom

from tallystick.errors import CheckFailed
from tallystick.orchestration.airflow_releases import (
    AirflowException,
    CronTriggerTimetable,
    DownstreamTasksSkipped,
)
from tallystick.orchestration.connections import services_of
from tallystick.orchestration.dag_ids import JUDGE_TASK, RECONCILE
from tallystick.orchestration.failures import failed_check, in_airflow_terms
from tallystick.orchestration.feed_dag import feed_dag
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.last_tasks import announce_complete_after, notify_after, tell_asset
from tallystick.orchestration.run_context import Context, owner_of
from tallystick.report.safe_text import as_called, program
from tallystick.settings.feed import Feed

log = logging.getLogger(__name__)

RECONCILE_TASK: Final = "reconcile"
FAILING: Final = "failing"


def verdict_asset_of(feed: str) -> Asset:
    """The asset that stands for what is proven of the feed."""
    return Asset(f"tallystick://{feed}/verdict")


def reconcile_dag(feed: Feed) -> DAG:
    """The feed's second DAG, on its own schedule; it changes nothing but what is on record.

    One task looks, and says what it found in a report and an asset event; the next one judges. A
    full read of landed files is one Spark application, which is parallel by itself: so no task here
    is mapped.
    """
    with feed_dag(
        RECONCILE,
        feed,
        words=as_called(_WORDS.format(feed=feed.name, topic=feed.source.topic)),
        schedule=CronTriggerTimetable(feed.reconcile.cron, timezone=feed.schedule.timezone),
        max_active_runs=1,
        description=f"Compares what was landed of {feed.source.topic} with broker and ledger",
    ) as dag:
        look = FeedTask(
            task_id=RECONCILE_TASK,
            feed=feed,
            work=reconcile,
            outlets=[verdict_asset_of(feed.name)],
        )
        judged = FeedTask(task_id=JUDGE_TASK, feed=feed, work=judge)
        look >> judged
        announce_complete_after(feed, judged)
        notify_after(feed, judged)
    return dag


def reconcile(feed: Feed, context: Context) -> dict[str, Any]:
    """Verdict, number of findings, and how far the feed is proven; the report is in the log.

    Where nothing is to fail on, that is pushed all the same, and the task that judges is skipped.
    When the only trouble is a witness that did not answer, raises AirflowException: that may pass,
    so Airflow asks again.
    """
    summary, failure = look(feed, context)
    context["ti"].xcom_push(FAILING, list(failure.args) if failure else None)
    if failure is None:
        context["ti"].xcom_push(BaseXCom.XCOM_RETURN_KEY, summary)
        raise DownstreamTasksSkipped(tasks=[JUDGE_TASK])
    return summary


def look(feed: Feed, context: Context) -> tuple[dict[str, Any], CheckFailed | None]:
    """What `reconcile` gives, and what is to fail on; raises AirflowException as it does."""
    # Workflows and reports take a second, which a DAG file must not wait for.
    from tallystick.domain.report.troubles import troubles_among
    from tallystick.domain.rules.findings import Level, Outcome, outcome_of
    from tallystick.report.faces import face_of
    from tallystick.workflows.landing import checking
    from tallystick.workflows.reconciling import reconciliation, reporting

    with in_airflow_terms(), services_of(feed) as services:
        found = reconciliation.reconcile(services, Level.L4, owner_of(context))
        document = reporting.report_of(services, found)
        number = reporting.store_report(services, document, owner_of(context))
        page = reporting.store_page(services, document.taken_at, face_of(document, "html"))
        page = services.store.uri(page)
        on_record = services.ledger.findings(services.feed_name)
    log.info("%s", face_of(document, "text"))
    log.info(
        "Report %d of feed %s. As a page: %s, or %s report %s --format html --out report.html",
        number,
        feed.name,
        page,
        program(),
        feed.name,
    )
    fail_on = feed.reconcile.fail_on
    failing = [each for each in found.findings if each.verdict in fail_on]
    outcome = outcome_of(((each.rule, each.verdict) for each in found.findings), fail_on)
    if outcome is Outcome.SILENCE:
        raise AirflowException(
            f"Feed {feed.name}: {failing[0]} A part of the report is UNKNOWN; Airflow asks again."
        )
    up_to = document.complete_up_to.isoformat() if document.complete_up_to else None
    summary = {
        "verdict": found.verdict.value,
        "finding_count": len(found.findings),
        "trouble_count": len(troubles_among(found.findings)),
        "complete_up_to": up_to,
        "report": number,
    }
    tell_asset(context, feed, verdict_asset_of(feed.name), summary)
    failure = checking.failure(feed.name, failing, on_record, fail_on)
    return summary, None if outcome is Outcome.CLEAN else failure


def judge(feed: Feed, context: Context) -> None:
    """Fail on what reconcile has found, where the feed says so."""
    failing = context["ti"].xcom_pull(task_ids=RECONCILE_TASK, key=FAILING)
    if failing:
        raise failed_check(CheckFailed(*failing), context)


_WORDS = """\
Compares three witnesses of `{topic}`: the ledger, the broker and HDFS, reads landed files in full
when they are due, and has another Kafka client compare a sample (levels L0 to L4). The log of the
task `reconcile` ends with the report, and says where it is as a page; the asset
`tallystick://{feed}/verdict` is told verdict and "complete up to". `tallystick reconcile {feed}`
says the same.

The task `judge` fails on the verdicts that the feed's `reconcile.fail_on` names: what is lost,
doubled, unknown or suspicious, unless it says otherwise. It is skipped where there is nothing to
fail on. `repair_{feed}` mends what can be mended.
"""
