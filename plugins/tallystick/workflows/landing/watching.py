"""Watches the topic while Spark reads it: Kafka's client would wait for one that is gone as for one
that is slow, and hold the cores of a shared server meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId
from tallystick.errors import SourceChanged, SourceError, SparkError, TopicUnknown
from tallystick.workflows.planning.observing import snapshot_of
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 10.0
# A broker that has just started may deny once what is there.
_SURE: Final = 2


@contextmanager
def topic_watched(services: Services, batch: BatchPlan, attempt_id: AttemptId) -> Iterator[None]:
    """End what the attempt does in Spark once the batch's topic is gone, or another of its name.

    Raises TopicGone, AnotherCluster or SourceChanged then, where Spark fails. The block may not ask
    the broker.
    """
    denials, ended = 0, threading.Event()

    def look() -> None:
        nonlocal denials
        while not ended.wait(_EVERY_SECONDS):
            try:
                is_there = services.broker.identity(batch.topic) == batch.topic_id
            except TopicUnknown:
                is_there = False
            except SourceError as error:
                log.info("Nothing is known of topic %s now: %s", batch.topic, error)
                continue
            denials = 0 if is_there else denials + 1
            if denials >= _SURE:
                log.error("Topic %s is gone: what reads it is ended.", batch.topic)
                services.spark.interrupt(attempt_id)

    try:
        with ThreadPoolExecutor(1, thread_name_prefix="topic") as pool:
            pool.submit(look)
            try:
                yield
            finally:
                ended.set()
    except SparkError as error:
        if denials >= _SURE:  # we have ended it, and no batch has
            error.blames_batch = False
        if denials:
            generations = services.ledger.accounts(services.feed_name).generations
            if not snapshot_of(services, generations).is_of(batch):
                reason = f"topic {batch.topic} was re-created while Spark read it"
                raise SourceChanged(batch.batch_id, reason) from None
        raise
