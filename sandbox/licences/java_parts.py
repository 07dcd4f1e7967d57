"""The jars of the POMs, each with the licences that its own POM names."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from sandbox.entry.jar_list import listed_jars
from sandbox.entry.layout import POMS
from sandbox.entry.system import ensure_java, ensure_maven
from sandbox.licences.looked_up import LOOKED_UP
from sandbox.licences.names import UNKNOWN, licence_named

CONNECTOR: Final = "spark-kafka"
GOAL: Final = "org.codehaus.mojo:license-maven-plugin:2.4.0:add-third-party"
_IN_BRACKETS: Final = r"\(((?:[^()]|\([^()]*\))*)\)"
_LINE: Final = re.compile(
    rf"^ +(?P<licences>(?:{_IN_BRACKETS} )+).* "
    r"\([\w.-]+:(?P<artifact>[\w.-]+):(?P<version>\S+) - .*\)$"
)


def java_parts(services: Iterable[str]) -> dict[str, str]:
    """Every jar that these list, with its licence; an unknown one is not named by Maven."""
    licences: dict[str, str] = {}
    for service in services:
        said = dict(_said_of(_third_party(POMS / service / "pom.xml")))
        licences |= {jar: _licence_of(jar, said) for jar in listed_jars(service)}
    return licences


def _third_party(pom: Path) -> str:
    """What Maven's plugin says of a POM's libraries: a line for each."""
    with TemporaryDirectory() as folder:  # it writes beside the POM
        shutil.copy(pom, folder)
        argv = [ensure_maven(), "-B", "-q", GOAL, "-Dlicense.acceptPomPackaging=true"]
        argv += ["-Dlicense.includedScopes=compile,runtime"]
        env = {**os.environ, "JAVA_HOME": str(ensure_java())}
        subprocess.run(argv, cwd=folder, env=env, check=True)
        return (
            Path(folder, "target", "generated-sources", "license", "THIRD-PARTY.txt")
        ).read_text()


def _said_of(lines: str) -> Iterator[tuple[str, list[str]]]:
    """``artifact-version`` of each library, and what its POM calls its licences."""
    for line in lines.splitlines():
        if found := _LINE.match(line):
            name = f"{found['artifact']}-{found['version']}"
            yield name, re.findall(_IN_BRACKETS, found["licences"])


def _licence_of(jar: str, said: Mapping[str, list[str]]) -> str:
    stem = jar.removesuffix(".jar")
    if stem in LOOKED_UP:
        return LOOKED_UP[stem]
    # A jar for one platform has its name behind the version.
    names = [name for name in said if stem == name or stem.startswith(f"{name}-")]
    if not names:
        return f"{UNKNOWN}: not named by Maven"
    found = [licence_named(each) or f"{UNKNOWN}: {each}" for each in said[max(names, key=len)]]
    return ", ".join(dict.fromkeys(found))
