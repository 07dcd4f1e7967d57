"""What can be read off docs/kubernetes, which no cluster has run: its form, and docker-compose.yml.

No schema of Kubernetes is among the pins: what is looked at here is what would fail at once.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

import tallystick
from sandbox.services import airflow_settings
from tests.support.repository import DOCS, ROOT

SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
(DEPLOYMENT, SERVICE, POLICY), (TASK,) = (
    list(yaml.safe_load_all((DOCS / "kubernetes" / f"{name}.yaml").read_text()))
    for name in ("connect-server", "pod-template")
)
PODS = {"server": DEPLOYMENT["spec"]["template"], "task": TASK}
# Each kind's group and version, and what it may say at its top.
KINDS = {
    "Deployment": ("apps/v1", {"replicas", "strategy", "selector", "template"}),
    "Service": ("v1", {"selector", "ports"}),
    "NetworkPolicy": ("networking.k8s.io/v1", {"podSelector", "policyTypes", "ingress"}),
    "Pod": ("v1", set()),
}
IN_A_POD = {
    "automountServiceAccountToken",
    "containers",
    "enableServiceLinks",
    "restartPolicy",
    "securityContext",
    "terminationGracePeriodSeconds",
    "volumes",
}
IN_A_CONTAINER = {
    "args",
    "env",
    "envFrom",
    "image",
    "name",
    "ports",
    "readinessProbe",
    "resources",
    "securityContext",
    "volumeMounts",
}


def _container(pod: str) -> dict[str, Any]:
    (found,) = PODS[pod]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("document", [DEPLOYMENT, SERVICE, POLICY, TASK])
def test_each_document_has_the_form_of_its_kind(document: dict[str, Any]) -> None:
    version, members = KINDS[document["kind"]]
    assert document["apiVersion"] == version
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    assert re.fullmatch(r"[a-z][a-z-]*", document["metadata"]["name"])
    assert set(document["spec"]) <= (members or IN_A_POD)


@pytest.mark.parametrize("pod", PODS)
def test_each_pod_is_our_image_as_its_own_user_and_names_only_what_it_mounts(pod: str) -> None:
    spec, container = PODS[pod]["spec"], _container(pod)
    assert set(spec) <= IN_A_POD
    assert set(container) <= IN_A_CONTAINER
    name = SERVICES["spark-connect"]["image"]
    assert container["image"] == f"registry.example/{name}:{tallystick.__version__}"
    user = re.search(r"useradd --system --uid (\d+) --create-home airflow", DOCKERFILE)
    assert user
    assert spec["securityContext"] == {"runAsNonRoot": True, "runAsUser": int(user[1])}
    mounted = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    assert mounted.keys() == {each["name"] for each in spec["volumes"]}
    assert f"HADOOP_CONF_DIR={mounted['hadoop-conf']}\n" in DOCKERFILE
    # A service named spark-connect would put SPARK_CONNECT_* into each pod.
    assert spec["enableServiceLinks"] is False
    assert all(isinstance(each.get("value", ""), str) for each in container["env"])


def test_the_server_is_started_as_in_compose_and_found_by_its_name() -> None:
    container = _container("server")
    assert container["args"] == SERVICES["spark-connect"]["command"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    assert environment == SERVICES["spark-connect"]["environment"]
    connection = json.loads(SERVICES["scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
    (port,) = container["ports"]
    assert connection["host"] == SERVICE["metadata"]["name"]
    assert SERVICE["spec"]["ports"] == [
        {"name": port["name"], "port": connection["port"], "targetPort": port["name"]}
    ]
    assert port["containerPort"] == connection["port"]
    assert container["readinessProbe"]["tcpSocket"]["port"] == port["name"]


def test_the_servers_pod_is_selected_and_only_tasks_reach_it() -> None:
    labels = PODS["server"]["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"] == labels
    assert SERVICE["spec"]["selector"] == labels
    assert POLICY["spec"]["podSelector"]["matchLabels"] == labels
    (allowed,) = POLICY["spec"]["ingress"]
    assert allowed["from"] == [{"podSelector": {"matchLabels": TASK["metadata"]["labels"]}}]
    (port,) = _container("server")["ports"]
    assert allowed["ports"] == [{"protocol": "TCP", "port": port["containerPort"]}]


def test_the_template_is_one_that_airflow_takes() -> None:
    container = _container("task")
    assert container["name"] == "base"
    assert TASK["spec"]["restartPolicy"] == "Never"
    feeds = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}["feeds"]
    assert any(f":{feeds}:ro" in each for each in SERVICES["scheduler"]["volumes"])
    told = {each["name"] for each in container["env"]}
    assert "AIRFLOW__CORE__EXECUTOR" in told & set(airflow_settings.shared_settings())


def test_it_says_that_it_was_never_run() -> None:
    for file in (DOCS / "kubernetes").iterdir():
        assert re.search("never run", file.read_text(), re.IGNORECASE), file
