"""Sessions of a Spark Connect server, before anybody answers."""

from __future__ import annotations

import gc
import weakref
from uuid import uuid4

from tallystick.spark.connect_server import ConnectServer

ADDRESS = "sc://127.0.0.1:1"


def test_a_session_that_is_closed_leaves_no_client_in_memory() -> None:
    server = ConnectServer(ADDRESS, lambda each: f"{ADDRESS}/;session_id={each};user_id=vera")
    clients = []
    for _ in range(5):
        session = server._opened(str(uuid4()), 1)
        clients.append(weakref.ref(session.spark.client))
        session.close()
    del session
    gc.collect()

    # PySpark itself holds the first one.
    assert [each() for each in clients[1:]] == [None] * 4


def test_a_session_that_is_cleared_away_leaves_the_others_their_threads() -> None:
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

    threads = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()
    server = ConnectServer(ADDRESS, lambda each: f"{ADDRESS}/;session_id={each};user_id=vera")
    for _ in range(2):  # PySpark itself holds the first one
        server._opened(str(uuid4()), 1).close()
    gc.collect()

    assert ExecutePlanResponseReattachableIterator._release_thread_pool_instance is threads
    assert threads.submit(lambda: 7).result() == 7
