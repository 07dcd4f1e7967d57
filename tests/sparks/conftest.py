"""Each supported Spark: installed as a wheel's user would, with Kafka's connector of that Spark."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.entry.environment import registry_environment
from sandbox.entry.layout import FETCHED
from tallystick.cli.jars import REPOSITORY_VARIABLE
from tallystick.spark.connector_download import CONNECTORS, MAVEN_CENTRAL, fetch_connector

UV = str(Path(sys.prefix) / "bin" / "uv")
PINS = {
    each.stem.removeprefix("spark-"): each for each in Path(__file__).parent.glob("spark-*.txt")
}


@dataclass(frozen=True)
class OneSpark:
    """A Spark with its own Python package, and what reads Kafka in it."""

    minor: str
    home: Path
    jars: tuple[str, ...]


def home_of(minor: str) -> Path:
    """The home of that Spark, fetched unless it is there: whole or not at all."""
    folder = FETCHED / "sparks" / minor
    stamp = folder / "made-from.txt"
    if not stamp.exists() or stamp.read_text() != PINS[minor].read_text():
        shutil.rmtree(folder, ignore_errors=True)
        options = ["--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
        argv = [UV, "pip", "install", *options, "--target", folder, "-r", PINS[minor]]
        subprocess.run(argv, env=registry_environment(), check=True)
        shutil.copy(PINS[minor], stamp)
    return folder / "pyspark"


@pytest.fixture(scope="session", params=CONNECTORS)
def one_spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> OneSpark:
    """That Spark, from the package index; its connector from the repository of `jars`."""
    repository = os.environ.get(REPOSITORY_VARIABLE, MAVEN_CENTRAL)
    folder = tmp_path_factory.mktemp("jars")
    jars = tuple(str(jar) for jar, _ in fetch_connector(folder, repository, request.param))
    return OneSpark(request.param, home_of(request.param), jars)
