"""What a connection that brings no answer is told as."""

from __future__ import annotations

import socket

import pytest
from kafka.protocol.metadata import MetadataRequest

from tallystick.sources.broker_answers import AskAgain
from tallystick.sources.client_properties import client_properties
from tallystick.sources.leader_connections import LeaderConnections


def asked(servers: str, seconds: float) -> AskAgain:
    connections = LeaderConnections(
        client_properties({"bootstrap.servers": servers}), request_seconds=30
    )
    request = MetadataRequest(max_version=12, topics=[])
    try:
        with pytest.raises(AskAgain) as caught:
            connections.send(connections.any_node(), request, lambda: seconds)
    finally:
        connections.close()
    return caught.value


def test_a_broker_that_is_silent_for_the_time_left_is_cut_short() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        failure = asked(f"127.0.0.1:{port}", 0.2)
    assert failure.is_cut
    assert "no answer in time" in str(failure.becomes)


def test_a_connection_that_is_refused_is_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    failure = asked(f"127.0.0.1:{port}", 30)
    assert not failure.is_cut
