"""What a connection that brings no answer is told as."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from kafka.protocol.metadata import MetadataRequest

from tallystick.sources.broker_answers import AskAgain
from tallystick.sources.client_properties import client_properties
from tallystick.sources.leader_connections import LeaderConnections
from tests.support.store_server import dead_url, silent_server


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


@pytest.mark.parametrize(("seconds", "is_cut"), [(0.2, True), (1.5, False)])
def test_a_broker_is_cut_short_where_it_had_but_a_moment(seconds: float, is_cut: bool) -> None:
    with silent_server() as url:
        failure = asked(urlsplit(url).netloc, seconds)
    assert failure.is_cut is is_cut
    assert "no answer in time" in str(failure.becomes)


def test_a_connection_that_is_refused_is_not_cut_short() -> None:
    assert not asked(urlsplit(dead_url()).netloc, 30).is_cut
