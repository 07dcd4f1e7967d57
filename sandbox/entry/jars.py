"""The Java parts: fetched by Maven from the POMs of ``sandbox/poms``, one directory per service.

A directory is complete or absent: it is filled beside its place, compared with the list of its
jars, and renamed. It carries the hash of the POM and the list that it was made from, so that a
change of either is noticed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from sandbox.entry.console import SetupFailed, only_one, run, say, tail_of
from sandbox.entry.jar_list import differences_in, list_of, listed_jars
from sandbox.entry.layout import FETCHED, JARS, POMS, SETUP_LOG
from sandbox.entry.system import ensure_java, ensure_maven

SERVICES = ("kafka", "hdfs", "spark-kafka", "yarn")
POM_NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"
STAMP = "made-from.sha256"


def ensure_jars(service: str) -> Path:
    """The directory with the jars of a service (one of SERVICES), fetched first if need be."""
    target, pom = JARS / service, POMS / service / "pom.xml"
    wanted = hashlib.sha256(pom.read_bytes() + list_of(service).read_bytes()).hexdigest()
    if _is_current(target, wanted):
        return target
    with only_one(FETCHED / "jars.lock", meanwhile=f"the jars of {service} come next"):
        if not _is_current(target, wanted):
            _fetch(pom, target, wanted)
    return target


def direct_jars(service: str) -> list[Path]:
    """Where the direct dependencies of a service's POM lie once they are fetched."""
    return [
        JARS / service / f"{coordinate.partition(':')[2]}-{version}.jar"
        for coordinate, version in versions_of(service).items()
    ]


def connector_jars() -> str:
    """The paths of Kafka's connector for Spark, as a `spark` connection and `--jars` name them."""
    return ",".join(str(jar) for jar in direct_jars("spark-kafka"))


def versions_of(service: str) -> dict[str, str]:
    """The direct dependencies of a service's POM: ``group:artifact`` to version, and classifier."""
    root = ET.parse(POMS / service / "pom.xml").getroot()
    properties = {
        p.tag.removeprefix(POM_NAMESPACE): p.text or ""
        for p in root.findall(f"{POM_NAMESPACE}properties/*")
    }
    found = {}
    for dependency in root.findall(f"{POM_NAMESPACE}dependencies/{POM_NAMESPACE}dependency"):
        group, artifact, version, kind = (
            dependency.findtext(f"{POM_NAMESPACE}{tag}", "")
            for tag in ("groupId", "artifactId", "version", "classifier")
        )
        if version.startswith("${"):
            version = properties[version[2:-1]]
        found[f"{group}:{artifact}"] = f"{version}-{kind}" if kind else version
    return found


def _is_current(target: Path, wanted: str) -> bool:
    stamp = target / STAMP
    return stamp.exists() and stamp.read_text() == wanted


def _fetch(pom: Path, target: Path, stamp: str) -> None:
    maven, java = ensure_maven(), ensure_java()
    say(f"fetching the jars of {target.name} by Maven")
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        argv = [maven, "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
        argv += ["-DincludeScope=runtime", f"-DoutputDirectory={staging}"]
        if not run(argv, log=SETUP_LOG, env={**os.environ, "JAVA_HOME": str(java)}):
            raise SetupFailed(
                f"Maven could not fetch the jars of {target.name}; its last words:\n"
                f"{tail_of(SETUP_LOG)}\nNext: check the network or Maven's settings, then repeat. "
                f"Log: {SETUP_LOG}"
            )
        _require_listed(staging, target.name)
        (staging / STAMP).write_text(stamp)
        staging.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _require_listed(folder: Path, service: str) -> None:
    """Return if the folder has the jars of the service's list and no others; raises SetupFailed."""
    differences = differences_in(folder, listed_jars(service))
    if differences:
        raise SetupFailed(
            f"the jars of {service} are not those of sandbox/poms/{service}/jars.sha256:\n"
            + "\n".join(f"    {each}" for each in differences)
            + "\nNext: if a version in the POM was changed, make the list anew (CONTRIBUTING.md, "
            '"A Java part"). If not, remove these files from Maven\'s local repository '
            "(~/.m2/repository) and repeat; if they come back so, ask who runs the repository that "
            "Maven fetches from, and do not use them."
        )
