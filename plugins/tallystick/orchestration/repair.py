"""The DAG `repair_<feed>`: mends what findings name, by the tasks that land every batch."""

from __future__ import annotations

import logging
from typing import Final

from airflow.sdk import DAG, Param, TriggerRule

from tallystick.domain.identities import BatchId
from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.orchestration.airflow_releases import AirflowFailException, AirflowSkipException
from tallystick.orchestration.batch_tasks import batch_tasks
from tallystick.orchestration.connections import bounded_by_airflow, services_of
from tallystick.orchestration.dag_ids import REPAIR
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.feed_dag import feed_dag, feed_param
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.last_tasks import announce_complete_after, notify_after
from tallystick.orchestration.repair_conf import DIGESTS, NUMBERS, digests_of, numbers_of
from tallystick.orchestration.run_context import (
    Context,
    failed_tasks,
    is_dry_run,
    owner_of,
    show_dry_run,
    state_of,
)
from tallystick.report.safe_text import as_called
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup

log = logging.getLogger(__name__)

_BEGIN: Final = "begin"
_SETTLE: Final = "settle"
_STEPS: Final = "steps"
"""By this key the first task hands the last one what it decided for storage."""


def repair_dag(feed: Feed | FeedGroup) -> DAG:
    """The feed's third DAG, started by hand only; of a group, for the feed that the form names."""
    with feed_dag(
        REPAIR,
        feed,
        words=as_called(_WORDS.format(feed=feed.name, topic=feed.reads)),
        schedule=None,
        max_active_runs=1,
        description=f"Lands again what is missing or damaged of {feed.reads}",
    ) as dag:
        begin = FeedTask(task_id=_BEGIN, feed=feed, work=begin_repair)
        settle = FeedTask(
            task_id=_SETTLE, feed=feed, work=settle_repair, trigger_rule=TriggerRule.ALL_DONE
        )
        batch_tasks(feed).expand(batch_id=begin.output) >> settle
        announce_complete_after(feed, settle)
        notify_after(feed, settle)
    dag.params = repair_form()  # after the tasks, as in ingest
    if isinstance(feed, FeedGroup):
        dag.params["feed"] = feed_param("The name of the feed, without which nothing is done.")
    return dag


def repair_form() -> dict[str, Param]:
    """The parameters of a repair."""
    return {
        "findings": Param(
            None,
            type=["null", "string"],
            pattern=NUMBERS,
            title="Findings",
            description="Their numbers, separated by commas. Empty: all that are open. A new"
            " generation of a log that was cut is opened, a file that nobody can bring back is"
            " given up, and a stray that may be the only copy of its rows is moved to"
            " quarantine, only for a finding named here.",
        ),
        "evidence": Param(
            None,
            type=["null", "string"],
            pattern=DIGESTS,
            title="Evidence",
            description="The digests of the evidence that was read, separated by commas, one for"
            " each finding that this is about. If one has another by now, nothing is done. Empty:"
            " not compared.",
        ),
        "dry_run": Param(
            True,
            type="boolean",
            title="Dry run",
            description="Show on the run's tab Tallystick what would be done; change nothing.",
        ),
    }


def begin_repair(feed: Feed, context: Context) -> list[str]:
    """The ids of the repair's batches; none in a dry run: Airflow skips the tasks that need one."""
    from tallystick.workflows.committing import publishing
    from tallystick.workflows.landing.run import noted
    from tallystick.workflows.repairing import repair as repairing
    from tallystick.workflows.repairing.plan_lines import plan_lines

    with in_airflow_terms(), services_of(feed) as opened:
        services = bounded_by_airflow(opened)
        numbers, digests = numbers_of(context["params"]), digests_of(context["params"])
        if is_dry_run(context):
            report = repairing.dry_repair(services, numbers, digests=digests)
            lines = plan_lines(report.plan)
            told = {"evidence": list(report.evidence), "has_steps": report.plan.has_steps}
            show_dry_run(context, lines, **told)
            log.info("A dry run: nothing was changed. Untick it to repair.")
            return []
        # What can't be published may be what is to be repaired; settle tries again, and tells.
        with noted([]):
            publishing.finish(services, owner_of(context))
        begun = repairing.begin_repair(services, numbers, owner_of(context), digests)
    context["ti"].xcom_push(key=_STEPS, value=to_plain(begun.plan.in_storage))
    return [str(each.batch_id) for each in begun.batches]


def settle_repair(feed: Feed, context: Context) -> None:
    """Quarantine strays, close what has ended; fail when a batch of the repair was not done.

    Without a repair that was begun nothing is changed: it was refused, or only asked about.
    """
    from tallystick.domain.repair.plan import StorageSteps
    from tallystick.workflows.repairing.closing import settle
    from tallystick.workflows.repairing.left_undone import still_unfinished

    _require_begun(feed, context)
    with in_airflow_terms(), services_of(feed) as services:
        plain = context["ti"].xcom_pull(task_ids=_BEGIN, key=_STEPS)
        steps = from_plain(StorageSteps, plain)
        done = settle(services, numbers_of(context["params"]), steps, owner_of(context))
        log.info(
            "%d stray files were moved to quarantine, %d findings are closed.",
            len(done.quarantined),
            len(done.closed),
        )
        for failure in done.failures:
            raise failure
        batches = [BatchId(each) for each in context["ti"].xcom_pull(task_ids=_BEGIN) or ()]
        left = [] if failed_tasks(context) else list(still_unfinished(services, batches))
    if left:
        raise AirflowFailException(
            f"Feed {feed.name}: {' '.join(left)} When they are over, repair again."
        )
    failed = failed_tasks(context)
    if failed:
        raise AirflowFailException(
            f"Feed {feed.name}: {', '.join(failed)}. Nothing of a batch that failed has changed;"
            " the next run of ingest or repair takes it up."
        )


def _require_begun(feed: Feed, context: Context) -> None:
    """Fails after a `begin` that failed; skips the task in a dry run and when none was begun."""
    begun = state_of(_BEGIN, context)
    # Asked first: the run would be green without a task at its end that fails.
    if begun not in ("success", "skipped"):
        raise AirflowFailException(
            f"Feed {feed.name}: nothing was changed, because {_BEGIN} has not succeeded ({begun})."
            " Read its log, then trigger the repair again."
        )
    if is_dry_run(context) or begun == "skipped":
        raise AirflowSkipException("Nothing was begun, so there is nothing to settle.")


_WORDS = """\
Mends what findings of `{feed}` name, as far as that can be done. Rows of `{topic}` that are
missing or damaged are landed again from Kafka, file by file, and only where Kafka still has them;
until the new batch commits, nothing changes. Stray files whose rows are committed are moved out
of the readers' directories, and kept. What can't be mended is named with its reason.

**The page of a finding does all this**: the tab Tallystick of this DAG lists the findings. The
button of each one shows what a repair would do, then does it. In the form here **Dry run** is
ticked at first: the tab Tallystick of the run shows the plan; then trigger again without it.
`tallystick repair {feed} --dry-run` says the same.
"""
