"""Tells an error where the story was when it came: an adapter knows a server or a path, and no
batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import BatchId
from tallystick.errors import IngestionError
from tallystick.workflows.services import Services

_NAMED_RANGES: Final = 3


@contextmanager
def at(services: Services, step: str, batch: BatchPlan | BatchId | None = None) -> Iterator[None]:
    """An error that leaves the block names feed and step, and the batch with its ranges if known.

    The innermost place stays: it knows most.
    """
    try:
        yield
    except IngestionError as error:
        if not error.place:
            error.place = (f"feed {services.feed_name}", f"at {step}", *_named(batch))
        raise


def _named(batch: BatchPlan | BatchId | None) -> list[str]:
    if batch is None:
        return []
    if not isinstance(batch, BatchPlan):
        return [f"batch {batch}"]
    named = [str(each.offsets) for each in batch.ranges[:_NAMED_RANGES]]
    left = len(batch.ranges) - len(named)
    return [f"batch {batch.batch_id}", *named, *([f"{left} more ranges"] if left else [])]
