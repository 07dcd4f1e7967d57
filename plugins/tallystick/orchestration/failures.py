"""Our errors in Airflow's terms, mapped once: tried again, failed for good, or left to others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tallystick.errors import AttemptFenced, BatchBusy, IngestionError

log = logging.getLogger(__name__)


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
        log.error("%s", error)
        if error.retry:
            raise
        raise AirflowFailException(str(error)) from error
