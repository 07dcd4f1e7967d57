"""What is told of a group whose brokers could not be asked."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from tallystick.errors import BrokerUnavailable
from tallystick.sources.frontier_group import KafkaFrontierGroup

OAUTH = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.client.id": "vera",
    "sasl.oauthbearer.client.secret": "pa55-word",
    "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
}


def test_without_a_token_the_endpoint_is_named() -> None:
    group = KafkaFrontierGroup(OAUTH, "shown")
    words = "Failed to acquire SASL OAUTHBEARER token: Could not connect to server"
    group._hear(KafkaError(KafkaError._AUTHENTICATION, words))
    group._hear(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    over = KafkaError(KafkaError._TIMED_OUT)
    with pytest.raises(BrokerUnavailable, match="token endpoint https://127") as caught:
        group._translate(over, KafkaException(over))
    assert "pa55-word" not in str(caught.value)
