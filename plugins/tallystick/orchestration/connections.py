"""Airflow's connections as ours, and the services that a task opens with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from airflow.sdk import Connection as AirflowConnection
from airflow.sdk.exceptions import AirflowNotFoundException

from tallystick.errors import ConnectionMissing
from tallystick.settings.connections import Connection, connection_of, variable_of
from tallystick.settings.feed import Feed

if TYPE_CHECKING:
    from tallystick.ports.ledger import Ledger
    from tallystick.ports.spark_runner import SparkRunner
    from tallystick.workflows.services import Services


def airflow_connection(conn_id: str) -> Connection:
    """The connection that Airflow has under this id; raises ConnectionMissing."""
    try:
        found = AirflowConnection.get(conn_id)
    except AirflowNotFoundException as error:
        raise ConnectionMissing(
            conn_id, None, f"a connection of that id in Airflow, or {variable_of(conn_id)}"
        ) from error
    return connection_of(
        conn_id,
        conn_type=found.conn_type,
        host=found.host,
        port=found.port,
        login=found.login,
        password=found.password,
        schema=found.schema,
        extra=found.extra,
    )


@contextmanager
def services_of(feed: Feed, submit: SparkRunner | None = None) -> Iterator[Services]:
    """The feed's adapters, opened with Airflow's connections and closed at the end of the block.

    The task's log says how far they have come, now and then, where the block takes that long.

    All connections are looked up first, Spark's too: without it, the provider would take YARN.
    """
    # Adapters bring heavy libraries along, which a DAG file must not wait for.
    from tallystick.report.plain_progress import plain_lines
    from tallystick.wiring import open_services

    with (
        plain_lines(f"feed {feed.name}") as listener,
        open_services(feed, airflow_connection, submit=submit) as services,
    ):
        yield services.heard_by(listener)


def open_ledger() -> AbstractContextManager[Ledger]:
    """The ledger alone, for a task that asks nobody else: the others' libraries take a second."""
    from tallystick import wiring

    return wiring.open_ledger(airflow_connection)
