"""A Kafka of a test's own, with settings that the shared one may not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.kafka import CONTROLLER_ID, KafkaNode
from sandbox.state import State


@contextmanager
def kafka_of_its_own(directory: Path, **settings: str) -> Iterator[str]:
    """Bootstrap servers of a running broker; in the names of settings underscores stand for dots.

    Nothing of it is left after the block.
    """
    directory.mkdir(parents=True, exist_ok=True)
    state = State(directory)
    node = KafkaNode(
        Home(directory, state, Ports(state, {})),
        "kafka",
        node_id=CONTROLLER_ID,
        roles=("broker", "controller"),
        controller_port="kafka-controller",
        settings={key.replace("_", "."): value for key, value in settings.items()},
    )
    try:
        node.start()
        yield node.address
    finally:
        node.stop()
