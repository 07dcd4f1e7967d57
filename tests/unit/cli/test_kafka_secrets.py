"""`kafka-secrets`: the file for Spark's nodes; and what is refused without it, before anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallystick.errors import SecretsExposed
from tallystick.settings.connections import connection_in
from tallystick.settings.feeds import load_feed
from tallystick.wiring.adapters import open_services, shipped_secrets
from tests.support.command_line import CommandLine

SASL = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "vera",
    "sasl.password": "pa55-word",
}


def environ(folder: Path, kafka: dict[str, str], **spark: object) -> dict[str, str]:
    connections = {
        "kafka": {"extra": kafka},
        "webhdfs": {"host": "127.0.0.1", "extra": {"fs": "hdfs://127.0.0.1:1"}},
        "spark": {"host": "spark://127.0.0.1:1", **spark},
    }
    return {"TALLYSTICK_FEEDS": str(folder), "LEDGER_DSN": "postgresql://127.0.0.1:1/none"} | {
        f"AIRFLOW_CONN_{kind.upper()}_DEFAULT": json.dumps({"conn_type": kind, **each})
        for kind, each in connections.items()
    }


def test_the_file_is_printed_with_a_warning(cli: CommandLine) -> None:
    cli.write("orders")
    told = cli.with_stage(environ=environ(cli.folder, SASL))("kafka-secrets", "orders")
    assert told.code == 0
    assert told.out == (
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="vera" password="pa55-word";\n'
    )
    assert told.err.startswith("Secret: ")
    assert "pa55-word" not in told.err


def test_without_a_secret_there_is_nothing_to_print(cli: CommandLine) -> None:
    cli.write("orders")
    plain = environ(cli.folder, {"bootstrap.servers": "127.0.0.1:1"})
    told = cli.with_stage(environ=plain)("kafka-secrets", "orders")
    assert (told.code, told.out) == (0, "")
    assert told.err == "Spark needs no file to reach the Kafka of feed orders.\n"


def test_both_engines_refuse_before_anything_is_opened(cli: CommandLine) -> None:
    cli.write("orders")
    given = environ(cli.folder, SASL)
    feed = load_feed(cli.folder, "orders")
    with pytest.raises(SecretsExposed, match="connection spark_default"):
        shipped_secrets(feed, lambda conn_id: connection_in(given, conn_id))
    with (
        pytest.raises(SecretsExposed, match="connection spark_default"),
        open_services(feed, lambda conn_id: connection_in(given, conn_id)),
    ):
        pass
    told = cli.with_stage(environ=given)("plan", "orders")
    assert told.code == 2
    assert "kafka-secrets" in told.err


def test_both_engines_name_the_file_on_the_nodes_and_ship_nothing(cli: CommandLine) -> None:
    cli.write("orders")
    given = environ(cli.folder, SASL, extra={"kafka-secrets": "/etc/k.properties"})
    feed = load_feed(cli.folder, "orders")
    assert shipped_secrets(feed, lambda conn_id: connection_in(given, conn_id)) == {}
    with open_services(feed, lambda conn_id: connection_in(given, conn_id)) as services:
        assert services.kafka_options["kafka.sasl.jaas.config"] == (
            "${file:/etc/k.properties:sasl.jaas.config}"
        )
        assert "pa55-word" not in repr(services.kafka_options)
