"""What clients need to reach the sandbox: the variables of ``env`` and Airflow's connections."""

from __future__ import annotations

import getpass
import json
from typing import Protocol

from sandbox.entry.jars import connector_jars
from sandbox.ports import HOST
from sandbox.service import Home
from sandbox.services.airflow import Airflow
from sandbox.services.airflow_settings import ADMIN, SECOND
from sandbox.services.hdfs import Hdfs
from sandbox.services.kafka import Kafka
from sandbox.services.postgres import Postgres
from sandbox.services.spark_connect import SparkConnect

# Two threads; the 4 is Spark's maxFailures: plain local[2] would never retry a task.
SPARK_MASTER = "local[2,4]"


class Services(Protocol):
    """What a sandbox has that clients reach."""

    home: Home
    kafka: Kafka
    hdfs: Hdfs
    postgres: Postgres
    airflow: Airflow
    spark_connect: SparkConnect


def client_variables(sandbox: Services) -> dict[str, str]:
    """The variables that clients read, of the services that run. Values contain passwords."""
    found = {}
    if sandbox.kafka.is_running:
        found["KAFKA_BOOTSTRAP_SERVERS"] = sandbox.kafka.bootstrap_servers
    if sandbox.hdfs.namenode.is_running:
        found["WEBHDFS_URL"] = sandbox.hdfs.namenode.web_url
        found["HDFS_URL"] = sandbox.hdfs.namenode.address
    if sandbox.spark_connect.is_running:
        found["SPARK_CONNECT_URL"] = sandbox.spark_connect.address
    if sandbox.postgres.is_running:
        found["LEDGER_DSN"] = sandbox.postgres.dsn("tallystick")
    if sandbox.airflow.api_server.is_running:
        found["AIRFLOW_URL"] = sandbox.airflow.url
        found["AIRFLOW_USER"] = ADMIN
        found["AIRFLOW_PASSWORD"] = sandbox.airflow.password()
        found["AIRFLOW_SECOND_USER"] = SECOND
        found["AIRFLOW_SECOND_PASSWORD"] = sandbox.airflow.password(SECOND)
    return found


def airflow_connections(sandbox: Services) -> dict[str, str]:
    """AIRFLOW_CONN_* variables of all services, each a JSON document. Values contain passwords.

    Services that do not run are named too, once their ports are chosen: Airflow reads connections
    at its start only.
    """
    namenode, postgres = sandbox.hdfs.namenode, sandbox.postgres
    jars = connector_jars()
    found: dict[str, dict[str, object]] = {
        "KAFKA_DEFAULT": {
            "conn_type": "kafka",
            "extra": {"bootstrap.servers": sandbox.kafka.bootstrap_servers},
        },
        "SPARK_DEFAULT": {
            "conn_type": "spark_connect",
            "host": HOST,
            "port": sandbox.home.ports["spark-connect"],
        },
        "SPARK_SUBMIT": {
            "conn_type": "spark",
            "host": SPARK_MASTER,
            "extra": {"deploy-mode": "client", "jars": jars},
        },
        "WEBHDFS_DEFAULT": {
            "conn_type": "webhdfs",
            "host": HOST,
            "port": sandbox.home.ports["namenode-http"],
            "login": getpass.getuser(),
            "extra": {"fs": namenode.address},
        },
        "LEDGER_DEFAULT": {
            "conn_type": "postgres",
            "host": HOST,
            "port": sandbox.home.ports["postgres"],
            "login": "tallystick",
            "password": postgres.password("tallystick"),
            "schema": "tallystick",
        },
    }
    return {f"AIRFLOW_CONN_{name}": json.dumps(value) for name, value in found.items()}
