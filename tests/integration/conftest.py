"""Fixtures of the tests against whole services."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sasl_kafka import SaslKafka


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[SaslKafka]:
    """A Kafka of the test's own that lets nobody in without a password."""
    node = SaslKafka(tmp_path / "kafka")
    try:
        node.start()
        yield node
    finally:
        node.stop()
