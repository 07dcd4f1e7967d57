"""Airflow's connections as ours, and the look at all of them before anything is done."""

from __future__ import annotations

from airflow.sdk import Connection as AirflowConnection
from airflow.sdk.exceptions import AirflowNotFoundException

from tallystick.errors import ConnectionMissing
from tallystick.settings.connections import Connection, connection_of, variable_of
from tallystick.settings.feed import Feed


def airflow_connection(conn_id: str) -> Connection:
    """The connection that Airflow has under this id; raises ConnectionMissing."""
    try:
        found = AirflowConnection.get(conn_id)
    except AirflowNotFoundException as error:
        raise ConnectionMissing(
            conn_id, None, f"a connection of that id in Airflow, or the variable {variable_of(conn_id)}"
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


def require_spark_connection(feed: Feed) -> None:
    """Raise ConnectionMissing without the feed's Spark connection: the provider would take YARN."""
    airflow_connection(feed.spark.connection)
