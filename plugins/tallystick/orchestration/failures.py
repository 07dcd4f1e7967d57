"""Our errors in Airflow's terms, mapped once: tried again, failed for good, or left to others.

What a task fails with on purpose, because its feed is not in order, is said in two lines of its
log, and no traceback follows: nothing in the code is wrong.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tallystick.errors import AttemptFenced, BatchBusy, CheckFailed, IngestionError
from tallystick.orchestration.airflow_releases import AirflowFailException, AirflowSkipException
from tallystick.orchestration.dag_ids import REPAIR, dag_id_of
from tallystick.orchestration.page_link import page_of_run
from tallystick.orchestration.run_context import Context
from tallystick.report.safe_text import as_called
from tallystick.report.wording import with_capital

log = logging.getLogger(__name__)


class FailedAsSaid(SystemExit):
    """The task has said why it fails. Airflow writes a traceback for everything but SystemExit."""

    def __init__(self, words: str) -> None:
        super().__init__(1)
        self.words = words

    def __str__(self) -> str:
        return self.words


def _never_again() -> dict[str, Any]:
    # Airflow 3.3 has policies; before it would try the task again after a SystemExit.
    try:
        from airflow.sdk import ExceptionRetryPolicy, RetryAction, RetryRule
    except ImportError:
        return {}
    return {"retry_policy": ExceptionRetryPolicy([RetryRule(FailedAsSaid, RetryAction.FAIL)])}


NEVER_AGAIN: Final = _never_again()
"""What makes `FailedAsSaid` final for an operator; nothing where Airflow has no policies."""


@contextmanager
def in_airflow_terms() -> Iterator[None]:
    """Inside the block, an error of ours becomes what Airflow must do about it.

    A batch that another attempt holds or took over: the task is skipped, and that is no failure. An
    error that a retry can't mend: AirflowFailException with the same words. Any other: raised as it
    is, so that Airflow tries again.
    """
    try:
        yield
    except (AttemptFenced, BatchBusy) as error:
        log.info("Left to another attempt: %s", error)
        raise AirflowSkipException(str(error)) from error
    except IngestionError as error:
        words = as_called(str(error))
        log.error("%s", words)
        if error.retry:
            raise
        raise AirflowFailException(words) from error


def failed_check(error: CheckFailed, context: Context) -> BaseException:
    """Logs verdict, findings and page of a feed that is not in order; returns what to raise.

    Airflow's own way comes first, then the command.
    """
    feed = error.args[0]
    return failed_as_said(
        error.describe(),
        f"The page says what each is and what ends it; the DAG {dag_id_of(REPAIR, feed)} mends what"
        f" can be mended. So does tallystick repair {feed}",
        context,
    )


def failed_as_said(words: str, next_step: str, context: Context) -> BaseException:
    """Logs these words, a link to the run's page, and what to do; returns what to raise."""
    ti = context["ti"]
    said = with_capital(f"{words.rstrip('.')}: {page_of_run(ti.dag_id, ti.run_id)}")
    log.error("%s", said)
    log.error("next: %s", as_called(next_step))
    return FailedAsSaid(said) if NEVER_AGAIN else AirflowFailException(said)
