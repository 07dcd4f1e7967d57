"""recheck.py beside the records that Kafka still has, as librdkafka's own broker gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import recheck
from tests.support.mock_kafka import MockKafka, mock_kafka
from tests.support.rechecked import Sceptic, sceptic_of
from tests.support.scripted_broker import NOW
from tests.support.story import Story, a_landed_story

OK, LOSS, UNKNOWN = "PROVEN_OK", "PROVEN_LOSS", "UNKNOWN"


class Described:
    """What no broker in memory answers: the topic's id."""

    topic_id = "topic-id-1"

    def __init__(self, kafka: dict[str, str]) -> None:
        assert "bootstrap.servers" in kafka

    def describe_topics(self, topics: Any) -> dict[str, Any]:
        found = SimpleNamespace(topic_id=self.topic_id)
        return {"orders": SimpleNamespace(result=lambda: found)}


@pytest.fixture
def sceptic(
    ledger_databases: Callable[[], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Sceptic:
    """One partition of ten records, landed in two batches."""
    monkeypatch.setattr(recheck, "AdminClient", Described)
    story = a_landed_story(ledger_databases(), tmp_path / "files", 6, 4)
    return sceptic_of(story, tmp_path, capsys)


@pytest.fixture
def kafka() -> Iterator[MockKafka]:
    with mock_kafka() as kafka:
        yield kafka


def produced(kafka: MockKafka, story: Story, **other: bytes) -> None:
    """The story's records; some with another value."""
    for partition, log in story.broker.logs.items():
        for offset, entry in enumerate(log.entries):
            value = other.get(f"at_{partition}_{offset}", entry.value)
            time = int(NOW.timestamp() * 1000)
            kafka.produce("orders", value, partition=partition, timestamp=time)


def test_rows_that_are_the_logs_records_are_proven(sceptic: Sceptic, kafka: MockKafka) -> None:
    produced(kafka, sceptic.story)

    found = sceptic.recheck(None, f"bootstrap.servers={kafka.servers}")

    assert found.verdicts == {0: (OK, OK), 1: (OK, OK)}, found.said
    assert found.exit_code == 0


def test_a_row_that_is_not_the_logs_record_is_named(sceptic: Sceptic, kafka: MockKafka) -> None:
    """The file is as it was committed, so no report can see it before a second reader does."""
    produced(kafka, sceptic.story, at_1_7=b"other")

    found = sceptic.recheck(None, f"bootstrap.servers={kafka.servers}")

    assert found.verdicts == {0: (OK, OK), 1: (LOSS, OK)}, found.said
    assert "rows PROVEN_LOSS [7, 8): 1 offsets of " in found.said
    assert found.exit_code == 1


def test_another_life_of_the_topic_proves_and_refutes_nothing(
    sceptic: Sceptic, kafka: MockKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    produced(kafka, sceptic.story, at_0_0=b"other")
    monkeypatch.setattr(Described, "topic_id", "topic-id-2")

    found = sceptic.recheck(None, f"bootstrap.servers={kafka.servers}")

    assert found.verdicts == {0: (OK, OK), 1: (OK, OK)}, found.said
