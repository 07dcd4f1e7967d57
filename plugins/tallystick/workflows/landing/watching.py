"""Watches the topic while Spark reads it: Kafka's client would wait for one that is gone as for one
that is slow, and hold the cores of a shared server meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId
from tallystick.errors import SourceChanged, SourceError, SparkError, TopicUnknown
from tallystick.workflows.planning.observing import snapshot_of
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

_EVERY_SECONDS: Final = 10.0
_SURE: Final = 2
"""A broker that has just started may deny once what is there."""


@contextmanager
def topic_watched(services: Services, batch: BatchPlan, attempt_id: AttemptId) -> Iterator[None]:
    """End what the attempt does in Spark once the batch's topic is gone, or another of its name.

    Raises TopicGone, AnotherCluster or SourceChanged then, if Spark has failed. The block may not
    ask the broker.
    """
    watch = _Watch(services, batch, attempt_id)
    thread = threading.Thread(target=watch.look, name=f"topic of {batch.batch_id}", daemon=True)
    thread.start()
    try:
        yield
    except SparkError:
        watch.end(thread)
        if watch.denials:
            _raise_if_gone(services, batch)
        raise
    finally:
        watch.end(thread)


def _raise_if_gone(services: Services, batch: BatchPlan) -> None:
    generations = services.ledger.accounts(services.feed_name).generations
    if not snapshot_of(services, generations).is_of(batch):
        reason = f"topic {batch.topic} was re-created while Spark read it"
        raise SourceChanged(batch.batch_id, reason)


@dataclass
class _Watch:
    services: Services
    batch: BatchPlan
    attempt_id: AttemptId
    denials: int = 0
    """In how many answers running the topic was not there."""
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        while not self.ended.wait(_EVERY_SECONDS):
            try:
                is_there = self._is_there()
            except SourceError as error:
                log.info("Nothing is known of topic %s now: %s", self.batch.topic, error)
                continue
            self.denials = 0 if is_there else self.denials + 1
            if self.denials >= _SURE:
                log.error("Topic %s is gone: what reads it is ended.", self.batch.topic)
                self.services.spark.interrupt(self.attempt_id)

    def _is_there(self) -> bool:
        try:
            return self.services.broker.identity(self.batch.topic) == self.batch.topic_id
        except TopicUnknown:
            return False

    def end(self, thread: threading.Thread) -> None:
        self.ended.set()
        thread.join()
