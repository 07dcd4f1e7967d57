"""An archive of Spark's classes: a JVM that maps it starts for about half of the CPU time.

It serves one Java with one set of jars. Any other JVM goes without it, and so does one that finds
no archive.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from sandbox.entry.console import only_one, run, say
from sandbox.entry.environment import STAMP
from sandbox.entry.layout import FETCHED, ROOT, SETUP_LOG, SPARK_LOGGING, VENV
from sandbox.entry.system import ensure_java, java_home

OPTIONS = "SPARK_SUBMIT_OPTS"
_PREFIX = "spark-classes-"
_FIRST_WORK = ROOT / "sandbox" / "services" / "spark_warm_up.py"
# A JVM that can't use an archive would say so on standard output, where an application speaks.
_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def spark_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What spark-submit is started with here: how it logs, and the archive if there is one.

    Options that the environment has are kept. A directory of Spark's configuration would come first
    on the class path, and no archive is made or taken with files in it: hence none.
    """
    return {"SPARK_CONF_DIR": "", OPTIONS: joined(environ, _using())}


def class_archive() -> Path | None:
    """Where the archive of this Java and these packages lies, or would; None without a Java."""
    java = java_home()
    if java is None or not STAMP.exists():
        return None
    made_of = (java.resolve(), (java / "release").read_bytes(), VENV, STAMP.read_bytes())
    digest = hashlib.sha256(repr(made_of).encode()).hexdigest()[:16]
    return FETCHED / f"{_PREFIX}{digest}.jsa"


def ensure_class_archive() -> None:
    """Make the archive unless it is there: a small application of Spark is run, for half a minute.

    Where that fails Spark starts as ever, and the next set-up tries again.
    """
    ensure_java()
    target = class_archive()
    if target is None or target.exists():
        return
    with only_one(FETCHED / "class-archive.lock", meanwhile="waiting for the archive of classes"):
        if not target.exists():
            _make(target)


def _make(target: Path) -> None:
    say("making an archive of Spark's classes, so that Spark starts faster")
    for old in FETCHED.glob(f"{_PREFIX}*"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=FETCHED, prefix=".class-archive-") as folder:
        made = Path(folder) / "made.jsa"
        making = [f"-XX:ArchiveClassesAtExit={made}", *_SILENT, _logging()]
        env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": ""}
        env |= {"JAVA_HOME": str(java_home()), OPTIONS: shlex.join(making)}
        # spark-submit takes the python3 on PATH. Its scripts can't run one whose path has a blank.
        env["PATH"] = f"{VENV / 'bin'}{os.pathsep}{env.get('PATH', os.defpath)}"
        env |= {"PYSPARK_PYTHON": "", "PYSPARK_DRIVER_PYTHON": ""}
        argv = [str(VENV / "bin" / "spark-submit"), "--master", "local[2]"]
        # It asks for a file system that is not there, and shall not wait for it.
        argv += ["--conf", "spark.hadoop.ipc.client.connect.max.retries=0"]
        argv += ["--conf", "spark.ui.enabled=false", str(_FIRST_WORK), folder]
        # A JVM that maps a part of an archive crashes: it gets its name when it is whole.
        if run(argv, log=SETUP_LOG, env=env) and made.exists():
            made.rename(target)
        else:
            say(f"no archive could be made; Spark starts as fast as without. Log: {SETUP_LOG}")


def _using() -> list[str]:
    archive = class_archive()
    if archive is None or not archive.exists():
        return [_logging()]  # naming one that is not there would cost Java's own
    return [f"-XX:SharedArchiveFile={archive}", *_SILENT, _logging()]


def _logging() -> str:
    return f"-Dlog4j2.configurationFile={SPARK_LOGGING}"


def joined(environ: Mapping[str, str], options: Sequence[str]) -> str:
    """Ours once, before theirs: an option of theirs may be two words, and one word stand twice."""
    theirs = shlex.split(environ.get(OPTIONS, ""))
    return shlex.join([*options, *(each for each in theirs if each not in options)])
