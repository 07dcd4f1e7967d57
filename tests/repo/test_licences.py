"""The page of licences names everything that is fetched, in the version that is, and knows each."""

from __future__ import annotations

import re

import pytest
import yaml
from packaging.licenses import canonicalize_license_expression

from sandbox.entry import engine, system
from sandbox.entry.jar_list import listed_jars
from sandbox.entry.layout import POMS
from sandbox.licences.java_parts import CONNECTOR
from sandbox.licences.looked_up import LOOKED_UP, OTHERS
from sandbox.licences.names import _PLAIN, UNKNOWN
from sandbox.licences.page import digest_of
from sandbox.licences.python_parts import pins
from tests.support.repository import DOCS, ROOT, sections_of

PAGE = DOCS / "licences.md"
SECTIONS = sections_of(PAGE, level=2)
PARTS = sorted(each.parent.name for each in POMS.glob("*/pom.xml"))
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def parts_of(section: str) -> list[str]:
    """The parts of each row of a section's table, without its head."""
    rows = re.findall(r"^\| (.+) \| (.+) \|$", SECTIONS[section], re.MULTILINE)[1:]
    return [part for _, parts in rows for part in parts.split(", ")]


def test_the_page_was_written_of_the_very_parts_that_are_fetched() -> None:
    pinned = [f"{name} {pin}" for name, pin in pins().items()]
    jars = [jar for part in PARTS for jar in listed_jars(part)]
    assert f"`{digest_of([*pinned, *OTHERS, *jars])}`" in PAGE.read_text()


def test_each_part_is_named_or_counted_once() -> None:
    assert sorted(parts_of("Python packages")) == sorted(
        [*pins(), *(each.split()[0] for each in OTHERS)]
    )
    assert sorted(parts_of("Kafka's connector for Spark")) == sorted(listed_jars(CONNECTOR))
    others = {jar for part in PARTS if part != CONNECTOR for jar in listed_jars(part)}
    told = parts_of("Java parts of the sandbox")
    counted = [int(each.split()[0]) for each in told if each.endswith(" jars")]
    named = {each for each in told if each.endswith(".jar")}
    assert named < others
    assert len(named) + sum(counted) == len(others)


def test_no_licence_is_unknown() -> None:
    assert UNKNOWN not in PAGE.read_text()


def test_each_look_up_is_of_a_version_that_is_fetched() -> None:
    fetched = {f"{name} {pin}" for name, pin in pins().items()}
    jars = {jar.removesuffix(".jar") for part in PARTS for jar in listed_jars(part)}
    assert set(LOOKED_UP) <= fetched | jars


def test_what_only_other_releases_of_airflow_bring_is_there() -> None:
    files = (ROOT / "tests" / "installed").glob("airflow-*.txt")
    other = {
        f"{name} {pin}"
        for file in files
        for name, pin in re.findall(r"^([\w.-]+)==([^\s;]+)", file.read_text(), re.MULTILINE)
        if name not in pins()
    }
    assert other == set(OTHERS)


def test_each_package_of_the_distribution_is_there() -> None:
    module = (ROOT / "sandbox" / "entry" / "system.py").read_text()
    installed = {*system.KERBEROS_PACKAGES, system.JAVA_PACKAGE, "python3.11-venv"}
    installed |= {*system.ENGINE_HELPERS, *engine.PACKAGES}
    installed |= set(re.findall(r'\["([a-z][a-z0-9-]+)"\]', module))
    stand_ins = (ROOT / "sandbox" / "compose" / "stand_ins" / "Dockerfile").read_text()
    for names in re.findall(r"--no-install-recommends ([a-z0-9 -]+)", DOCKERFILE + stand_ins):
        installed |= set(names.split())
    assert {"maven", "chromium", "postgresql", "pgbouncer", "procps", "curl"} < installed
    assert set(parts_of("Packages of Debian and Ubuntu")) == installed


def test_each_base_image_is_there() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].values()
    built = {each["image"] for each in services if "build" in each}
    images = {each["image"] for each in services if "image" in each} - built
    images |= set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    assert set(parts_of("Base images")) == {
        each for each in images if not each.startswith("tallystick-")
    }


@pytest.mark.parametrize("name", _PLAIN)
def test_plain_names_are_those_of_spdx(name: str) -> None:
    assert canonicalize_license_expression(name) == name
