"""Which program a ``./tallystick`` command line runs, and in what environment.

Prepares only what that program needs.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final

from sandbox.entry.changed import changed_files, rooms_of
from sandbox.entry.class_archive import spark_variables
from sandbox.entry.console import SetupFailed, say
from sandbox.entry.engine import ensure_engine
from sandbox.entry.environment import ensure_environment
from sandbox.entry.jars import SERVICES, ensure_jars
from sandbox.entry.layout import JARS, ROOT, VENV, connections_file, state_dir
from sandbox.entry.system import (
    ensure_chromium,
    ensure_java,
    ensure_kerberos,
    ensure_pooler,
    ensure_postgres,
    java_home,
)

# Folders that are tested on request alone, for they take minutes.
_ON_REQUEST: Final[Mapping[str, Sequence[str]]] = {
    # A whole Airflow, by REST and in a browser.
    "airflow": ("tests/airflow",),
    # Services that are killed, frozen and cut off, and every anomaly made.
    "trouble": ("tests/trouble", "tests/detector"),
    # TLS, Kerberos, YARN, a standby: services that a sandbox has on request.
    "clusters": ("tests/clusters",),
    # An environment for each release of Airflow, from a package index.
    "installed": ("tests/installed",),
    # Every Spark that is supported, from a package index: gigabytes.
    "sparks": ("tests/sparks",),
    # docker-compose.yml on a container engine.
    "compose": ("tests/compose",),
}
# The folders whose tests need no service.
UNIT_TESTS: Final = ("tests/unit", "tests/protocol", "tests/repo", "plugins/tallystick/domain")
_FOLDERS: Final[Mapping[str, Sequence[str]]] = {"unit": UNIT_TESTS, **_ON_REQUEST}
_KINDS: Final = (*_FOLDERS, "changed", "all")
# Options with which a command starts no Spark.
_ONLY_TELLS: Final = {"--help", "-h", "--dry-run"}


def main(argv: Sequence[str]) -> int:
    """The exit code of the command; set-up that fails is told in plain words and gives 2."""
    try:
        return _dispatch(list(argv))
    except SetupFailed as failure:
        say(str(failure))
        return failure.exit_code
    except KeyboardInterrupt:
        return 130


def _dispatch(argv: list[str]) -> int:
    command, rest = (argv[0], argv[1:]) if argv else ("--help", [])
    if command == "test":
        _require_tests(rest)
    python = str(ensure_environment())
    if command == "test":
        if rest[:1] == ["changed"]:
            rest[:1] = ["all", *rooms_of(changed_files())]
        return _test(python, rest)
    _ensure_spark(command, rest)
    env = _environment()
    match command:
        case "sandbox":
            run = [python, "-P", "-m", "sandbox", *rest]
        case "airflow":
            run = [python, "-P", "-m", "sandbox.airflow_command", *rest]
        case "demo":
            run = [python, "-P", "-m", "sandbox.demo", *rest]
        case _:
            run = [python, "-P", "-m", "tallystick", command, *rest]
    os.execve(python, run, env)


def _ensure_spark(command: str, arguments: Sequence[str]) -> None:
    """Fetch what Spark needs where the command starts it: Java, and to read Kafka the connector."""
    if _ONLY_TELLS & set(arguments):
        return
    lands = command in ("land", "repair")
    reads_in_full = command == "reconcile" and any(
        each.removeprefix("--level=") == "3" for each in arguments
    )
    if lands or reads_in_full:
        ensure_java()
    if lands:
        ensure_jars("spark-kafka")


def _require_tests(arguments: Sequence[str]) -> None:
    """Return if the first argument is a kind of test, an option, or a path that is there."""
    first = arguments[0] if arguments else "all"
    if first in _KINDS or first.startswith("-") or (ROOT / first.partition("::")[0]).exists():
        return
    raise SetupFailed(
        f"there are no tests {first!r}; accepted: {', '.join(_KINDS)}, a path such as"
        " tests/unit/cli, and options of pytest. Next: ./tallystick test unit"
    )


def _test(python: str, arguments: list[str]) -> int:
    """Run the tests: checks first, then pytest; the first failing check ends it.

    Several kinds are one run, in which no processor waits for the last module of each.
    """
    kinds = list(takewhile(_FOLDERS.__contains__, arguments))
    options = arguments[1:] if arguments[:1] == ["all"] else arguments[len(kinds) :]
    env = _environment(connected=False)
    tool = VENV / "bin"
    # A file is one worker's: a module's slow preparation is not done twice. The order stays as it
    # was collected, the slow files first.
    spread = ["--maxprocesses", "4", "--dist", "loadfile", "--no-loadscope-reorder"]
    spread += ["-n", "auto" if kinds else str(_processes())]
    if "compose" in kinds:
        ensure_engine()
        spread = ["-s"] if kinds == ["compose"] else spread  # what is a stand-in is said at once
    if kinds not in (["unit"], ["compose"]):
        ensure_java()
        ensure_chromium()
        for service in SERVICES:
            ensure_jars(service)
    if "clusters" in kinds:  # once, and not by each worker
        ensure_kerberos()
        ensure_postgres()
        ensure_pooler()
    if kinds:
        folders = [folder for kind in kinds for folder in _FOLDERS[kind]]
        steps = [[python, "-m", "pytest", *folders, *spread, *options]]
    else:
        apart = [f"--ignore={each}" for folders in _ON_REQUEST.values() for each in folders]
        steps = [
            [str(tool / "ruff"), "check", "."],
            [str(tool / "ruff"), "format", "--check", "."],
            [str(tool / "mypy")],
            [str(tool / "lint-imports")],
            [python, "-m", "pytest", *(options or [*spread, *apart])],
        ]
    for step in steps:
        say(f"running {Path(step[0]).name} {' '.join(step[1:])}")
        code = subprocess.run(step, cwd=ROOT, env=env, check=False).returncode
        if code != 0:
            return code
    return 0


def _processes() -> int:
    """How many processes share all tests: one more than processors, if memory allows it.

    Tests of services wait a third of their time. Each process has services of its own, in 3 GB.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min((os.cpu_count() or 1) + 1, memory // 4_000_000_000))


def _environment(*, connected: bool = True) -> dict[str, str]:
    """The environment of the command.

    Our programs come first on PATH; our packages, a Java 17 and the connections are there.
    """
    env = dict(os.environ)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # or every start compiles hundreds of our modules
    env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
    env["VIRTUAL_ENV"] = str(VENV)
    paths = [str(ROOT / "plugins"), str(ROOT), env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    env.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # Spark's driver would bind the outward address
    java = java_home()
    if java is not None:
        env["JAVA_HOME"] = str(java)
    if not env.get("SPARK_CONF_DIR"):
        env |= spark_variables(env)
    if connected:
        env.setdefault("TALLYSTICK_PROGRAM", "./tallystick")  # as messages shall call it
        for name, value in _connections().items():
            if not any(plain in os.environ for plain in _SAME_AS.get(name, ())):
                env.setdefault(name, value)
        if os.environ.get("SPARK_MASTER", "local").startswith("local"):
            env.setdefault("AIRFLOW_CONN_SPARK_DEFAULT", _spark_here())
    return env


# An address that the caller names by a plain variable beats the sandbox's Airflow connection, which
# the command line would otherwise read first.
_SAME_AS: Final = {
    "AIRFLOW_CONN_KAFKA_DEFAULT": ("KAFKA_BOOTSTRAP_SERVERS",),
    "AIRFLOW_CONN_WEBHDFS_DEFAULT": ("WEBHDFS_URL", "HDFS_URL"),
    "AIRFLOW_CONN_LEDGER_DEFAULT": ("LEDGER_DSN",),
    "AIRFLOW_CONN_SPARK_DEFAULT": ("SPARK_MASTER",),
}


def _spark_here() -> str:
    """A Spark connection to this machine, with the connector's jars where they were fetched."""
    master = os.environ.get("SPARK_MASTER") or "local[2,4]"
    jars = ",".join(str(jar) for jar in sorted((JARS / "spark-kafka").glob("*.jar")))
    extra = {"deploy-mode": "client", "jars": jars}
    return json.dumps({"conn_type": "spark", "host": master, "extra": extra})


def _connections() -> Mapping[str, str]:
    """Addresses and passwords of the sandbox that is up; empty if none is."""
    file = connections_file(state_dir())
    if not file.exists():
        return {}
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as failure:
        say(f"{file} could not be read and is ignored ({failure}). Next: ./tallystick sandbox up")
        return {}
    return {str(name): str(value) for name, value in found.items()}
