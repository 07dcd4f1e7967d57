"""Reports the current step to listeners, and adds it to errors: an adapter knows no batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import BatchId
from tallystick.errors import IngestionError
from tallystick.ports.progress import Progress
from tallystick.workflows.services import Services

T = TypeVar("T")

_NAMED_RANGES: Final = 3


def counted(services: Services, step: str, unit: str, of: Sequence[T]) -> Iterator[T]:
    """Each of them, told by its number as its turn comes."""
    for number, each in enumerate(of):
        services.progress(Progress(step, number, len(of), unit))
        yield each


@contextmanager
def at(services: Services, step: str, batch: BatchPlan | BatchId | None = None) -> Iterator[None]:
    """The step is told; an error that leaves the block names it, the feed, and the batch with its
    ranges if known.

    The innermost place stays: it knows most.
    """
    services.progress(Progress(step))
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
