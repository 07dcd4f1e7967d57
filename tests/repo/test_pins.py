"""Versions are stated once, and agree wherever two files must."""

import ast
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from sandbox.entry.jar_list import list_of, listed_jars
from sandbox.entry.jars import SERVICES, direct_jars, versions_of
from sandbox.entry.layout import POMS, REQUIREMENTS, ROOT
from tallystick.spark.connector_download import CONNECTORS, DEFAULT

EXPECTED = {
    "kafka": {
        "org.apache.kafka:kafka_2.13": "4.3.1",
        "org.apache.kafka:kafka-tools": "4.3.1",
        "org.apache.logging.log4j:log4j-slf4j-impl": "2.25.4",
    },
    "hdfs": {
        "org.apache.hadoop:hadoop-hdfs": "3.5.0",
        "org.apache.hadoop:hadoop-common": "3.5.0",
        "org.apache.hadoop:hadoop-hdfs-client": "3.5.0",
    },
    "yarn": {
        "org.apache.hadoop:hadoop-yarn-server-resourcemanager": "3.5.0",
        "org.apache.hadoop:hadoop-yarn-server-nodemanager": "3.5.0",
        "org.apache.hadoop:hadoop-yarn-server-timelineservice": "3.5.0",
        "org.apache.hadoop:hadoop-common": "3.5.0",
        "org.apache.hadoop:hadoop-hdfs": "3.5.0",
        "org.apache.hadoop:hadoop-hdfs-client": "3.5.0",
    },
    "spark-kafka": {
        "org.apache.spark:spark-sql-kafka-0-10_2.13": "4.1.3",
        "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.1.1",
        "org.apache.kafka:kafka-clients": "3.9.1",
        "org.apache.commons:commons-pool2": "2.12.1",
    },
}

# With what a bench alone fetches.
PARTS = sorted(each.parent.name for each in POMS.glob("*/pom.xml"))


def lines_of(file: Path) -> list[Requirement]:
    texts = [re.split(r"#|\\", line)[0].strip() for line in file.read_text().splitlines()]
    return [Requirement(text) for text in texts if text and not text.startswith("-")]


def pins_without_a_hash(text: str) -> list[str]:
    """The pins of a compiled file that accept whatever bears their version."""
    pins = text.replace("\\\n", " ").splitlines()
    return [pin for pin in pins if "==" in pin.partition("#")[0] and "--hash=sha256:" not in pin]


DIRECT = lines_of(ROOT / "requirements.in")
KERBEROS = ROOT / "requirements-kerberos.txt"
PINNED = {canonicalize_name(pin.name): pin for pin in lines_of(REQUIREMENTS)}
# Not in every environment: what has to be compiled.
PINNED_ANYWHERE = {canonicalize_name(pin.name): pin for pin in lines_of(KERBEROS)} | PINNED


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NEEDED = [Requirement(text) for text in PROJECT["dependencies"]]
EXTRAS = [Requirement(text) for each in PROJECT["optional-dependencies"].values() for text in each]
RANGES = [*NEEDED, *EXTRAS]
RELEASES = sorted((ROOT / "tests" / "installed").glob("airflow-*.txt"))


def pinned_version(name: str) -> Version:
    (specifier,) = PINNED_ANYWHERE[canonicalize_name(name)].specifier
    assert specifier.operator == "=="
    return Version(specifier.version)


def test_both_spark_packages_carry_the_same_version() -> None:
    assert pinned_version("pyspark") == pinned_version("pyspark-client")
    assert version("pyspark") == version("pyspark-client") == pyspark.__version__


def test_the_connector_is_the_one_of_the_pinned_spark() -> None:
    connector = versions_of("spark-kafka")["org.apache.spark:spark-sql-kafka-0-10_2.13"]
    assert Version(connector) == pinned_version("pyspark")


def test_the_server_that_the_documents_start_has_that_connector() -> None:
    text = (ROOT / "docs" / "spark.md").read_text()
    named = re.findall(r"spark-sql-kafka-0-10_2\.13:([\d.]*\d)", text)
    assert [Version(each) for each in named] == [pinned_version("pyspark")]


@pytest.mark.parametrize("direct", DIRECT, ids=str)
def test_every_direct_requirement_is_pinned_as_asked(direct: Requirement) -> None:
    assert pinned_version(direct.name) in direct.specifier


@pytest.mark.parametrize("wanted", RANGES, ids=str)
def test_each_pin_lies_within_the_wheels_range(wanted: Requirement) -> None:
    assert wanted.specifier
    assert pinned_version(wanted.name) in wanted.specifier


@pytest.mark.parametrize("release", RELEASES, ids=lambda file: file.stem)
@pytest.mark.parametrize("wanted", RANGES, ids=str)
def test_each_release_of_airflow_is_tested_within_the_wheels_range(
    release: Path, wanted: Requirement
) -> None:
    # These environments do without what is an extra.
    name = canonicalize_name(wanted.name)
    pins = [pin for pin in lines_of(release) if canonicalize_name(pin.name) == name]

    assert pins or wanted not in NEEDED
    for pin in pins:
        (specifier,) = pin.specifier
        assert specifier.operator == "=="
        assert specifier.version in wanted.specifier


def test_the_wheel_asks_for_every_library_that_the_package_imports() -> None:
    brought = {
        "airflow": "apache-airflow",
        "attrs": "apache-airflow-providers-openlineage",
        "fastapi": "apache-airflow",
        "grpc": "pyspark-client",
        "kafka": "kafka-python",
        "openlineage": "apache-airflow-providers-openlineage",
        "pydantic_core": "pydantic",
        "pyspark": "pyspark-client",
        "sqlalchemy": "apache-airflow",
        "urllib3": "requests",
        "yaml": "pyyaml",
    }
    asked = {canonicalize_name(each.name) for each in RANGES}
    imported = {
        node.module.split(".")[0] if isinstance(node, ast.ImportFrom) else alias.name.split(".")[0]
        for path in (ROOT / "plugins").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if not (isinstance(node, ast.ImportFrom) and (node.level or node.module is None))
    }
    foreign = imported - set(sys.stdlib_module_names) - {"tallystick"}

    assert {canonicalize_name(brought.get(name, name)) for name in foreign} <= asked


def test_every_pin_is_exact() -> None:
    for name in PINNED:
        pinned_version(name)


@pytest.mark.parametrize("file", [REQUIREMENTS, KERBEROS, *RELEASES], ids=lambda file: file.stem)
def test_every_pin_has_a_hash(file: Path) -> None:
    text = file.read_text()
    first = next(line for line in text.splitlines() if "==" in line and line[0] != "#")

    assert pins_without_a_hash(text) == []
    bare = text.replace(first, first.removesuffix(" \\"))
    assert pins_without_a_hash(bare) == [first.removesuffix(" \\")]


def test_this_environment_holds_the_pins() -> None:
    wanted = [pin for pin in PINNED.values() if pin.marker is None or pin.marker.evaluate()]
    strays = {
        pin.name: version(pin.name)
        for pin in wanted
        if Version(version(pin.name)) != pinned_version(pin.name)
    }
    assert strays == {}


def test_the_compiled_pins_name_no_host_and_no_path() -> None:
    private = r"https?:|--(extra-)?index|--find-links|file:|\s/"
    assert not re.search(private, REQUIREMENTS.read_text())


@pytest.mark.parametrize("service", SERVICES)
def test_the_java_parts_have_the_versions_that_were_measured(service: str) -> None:
    assert versions_of(service) == EXPECTED[service]


@pytest.mark.parametrize("part", PARTS)
def test_each_list_of_jars_has_checksums_and_names_what_its_pom_names(part: str) -> None:
    assert {*SERVICES, "iceberg", "kafka-tiered"} == set(PARTS)
    lines = list_of(part).read_text().splitlines()

    # sha256sum's own format: the Dockerfile has it read.
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w.-]+\.jar", line) for line in lines)
    assert len(listed_jars(part)) == len(lines)
    assert {each.name for each in direct_jars(part)} <= set(listed_jars(part))


def test_the_connector_of_a_wheels_user_is_the_sandboxs_byte_for_byte() -> None:
    assert {each.name: each.sha256 for each in CONNECTORS[DEFAULT]} == listed_jars("spark-kafka")
    assert {
        f"{each.group}:{each.artifact}": each.version for each in CONNECTORS[DEFAULT]
    } == versions_of("spark-kafka")


@pytest.mark.parametrize("service", PARTS)
def test_no_pom_names_a_repository(service: str) -> None:
    assert "<repository>" not in (POMS / service / "pom.xml").read_text()


def test_spark_is_given_every_connector_jar() -> None:
    names = sorted(jar.name for jar in direct_jars("spark-kafka"))
    assert names == [
        "commons-pool2-2.12.1.jar",
        "kafka-clients-3.9.1.jar",
        "spark-sql-kafka-0-10_2.13-4.1.3.jar",
        "spark-token-provider-kafka-0-10_2.13-4.1.1.jar",
    ]
