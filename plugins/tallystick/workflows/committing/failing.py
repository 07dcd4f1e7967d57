"""Keeps in the ledger why an attempt has ended, whatever step it was at."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tallystick.domain.batches.batch import Attempt
from tallystick.errors import AttemptFenced, CommitOutcomeUnknown, IngestionError
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


@contextmanager
def failing(services: Services, attempt: Attempt) -> Iterator[None]:
    """Keeps the reason of a failed attempt in the ledger, gives its lease back, and raises it
    again.

    An unknown commit is no failure: the attempt may have committed, so nothing is recorded.
    """
    try:
        yield
    except (AttemptFenced, CommitOutcomeUnknown):
        raise
    except BaseException as error:
        reason, blames_batch = repr(error), True
        if isinstance(error, IngestionError):
            reason, blames_batch = error.describe(), error.blames_batch
        try:
            services.ledger.record_failure(attempt, reason, blames_batch=blames_batch)
        except IngestionError as second:
            log.warning("The failure could not be recorded; the lease will run out: %s", second)
        raise
