"""Which brokers Spark can't reach is read from what Kafka's client says."""

from __future__ import annotations

import pytest

from tallystick.errors import BrokersUnreached
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.unreached import failure, unreached_in

PLAN = '{"kafka_options": {"kafka.bootstrap.servers": "one:9092,two:9092"}}'
ORDER = LandingOrder("orders", "b1", "a1", "hdfs://nn/plan.json", plan_text=PLAN)


@pytest.mark.parametrize(
    ("line", "broker"),
    [
        (
            "WARN NetworkClient: [AdminClient clientId=x] Connection to node -1"
            " (kafka/10.0.0.7:9092) could not be established. Node may not be available.",
            "kafka/10.0.0.7:9092",
        ),
        ("WARN NetworkClient: Error connecting to node k2:9092 (id: 2 rack: null)", "k2:9092"),
        ("WARN ClientUtils: Couldn't resolve server k3:9092 from bootstrap.servers", "k3:9092"),
        ("WARN NetworkClient: Node 1 disconnected.", None),
    ],
)
def test_a_broker_is_named_as_the_client_names_it(line: str, broker: str | None) -> None:
    assert unreached_in(line) == broker


@pytest.mark.parametrize(
    "reason",
    [
        "TimeoutException: Timed out waiting for a node assignment. Call: listNodes",
        "Timeout of 30000ms expired before the position for partition t-0 could be determined",
        "ConfigException: No resolvable bootstrap urls given in bootstrap.servers",
    ],
)
def test_no_broker_is_a_reason_of_its_own(reason: str) -> None:
    found = failure(ORDER, "app-1", reason, {"k2:9092": None, "k3:9092": None})

    assert isinstance(found, BrokersUnreached)
    assert f"app-1 failed: it can't reach Kafka at k2:9092, k3:9092: {reason}" in str(found)
    assert "one:9092,two:9092, or at a broker that is named" in str(failure(ORDER, "a", reason))


def test_another_failure_is_not_laid_on_a_broker_that_was_away_for_a_moment() -> None:
    found = failure(ORDER, "app-1", "ArithmeticException: long overflow", ["k2:9092"])

    assert not isinstance(found, BrokersUnreached)
