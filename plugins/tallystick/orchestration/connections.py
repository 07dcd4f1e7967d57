"""Airflow's connections as ours, and the services that a task opens with them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow.sdk import Connection as AirflowConnection

from tallystick.errors import ConnectionMissing
from tallystick.orchestration.airflow_releases import AirflowNotFoundException, conf
from tallystick.settings.connections import Connection, connection_like, variable_of
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup

if TYPE_CHECKING:
    from tallystick.ledger.ledger import Ledger
    from tallystick.workflows.services import Services


def airflow_connection(conn_id: str) -> Connection:
    """The connection that Airflow has under this id; raises ConnectionMissing."""
    with _missing(conn_id):
        found = AirflowConnection.get(conn_id)
    return connection_like(conn_id, found)


async def airflow_connection_async(conn_id: str) -> Connection:
    """The same in a loop that must not wait, such as a triggerer's."""
    with _missing(conn_id):
        found = await AirflowConnection.async_get(conn_id)
    return connection_like(conn_id, found)


@contextmanager
def _missing(conn_id: str) -> Iterator[None]:
    try:
        yield
    except AirflowNotFoundException as error:
        raise ConnectionMissing(
            conn_id, None, f"a connection of that id in Airflow, or {variable_of(conn_id)}"
        ) from error


def connect_url(conn_id: str) -> str:
    """Returns the URL that Airflow's Spark provider makes of a connection."""
    from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook

    url: str = SparkConnectHook(conn_id).get_connection_url()
    return url


@contextmanager
def services_of(feed: Feed) -> Iterator[Services]:
    """The feed's adapters, opened with Airflow's connections and closed at the end of the block.

    The task's log says how far they have come, now and then, where the block takes that long.

    All connections are looked up first, Spark's too.
    """
    # Adapters bring heavy libraries along, which a DAG file must not wait for.
    from tallystick.report.progress_line import plain_lines
    from tallystick.wiring.adapters import open_services

    with (
        plain_lines(f"feed {feed.name}") as listener,
        open_services(feed, airflow_connection, url_of=connect_url) as services,
    ):
        yield services.heard_by(listener)


def topics_of(group: FeedGroup) -> Collection[str]:
    """The topics of the group's cluster now; raises as `open_services`."""
    from tallystick.wiring import adapters

    with adapters.open_broker(group, airflow_connection) as broker:
        return broker.topics()


def bounded_by_airflow(services: Services) -> Services:
    """The same for a task whose batches are mapped: Airflow fails one that returns more, once they
    are claimed.
    """
    most = conf.getint("core", "max_map_length")
    return replace(services, most_batches=min(services.most_batches, most))


def open_ledger() -> AbstractContextManager[Ledger]:
    """The ledger alone, for a task that asks nobody else: the others' libraries take a second."""
    from tallystick.wiring import adapters

    return adapters.open_ledger(airflow_connection)
