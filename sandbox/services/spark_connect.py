"""A Spark Connect server on this machine: Spark that is warm, for whoever lands in its sessions."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence

from typing_extensions import override

from sandbox.entry.class_archive import OPTIONS, spark_variables
from sandbox.entry.jars import connector_jars, ensure_jars
from sandbox.entry.layout import ROOT
from sandbox.entry.system import ensure_java
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST, answers
from sandbox.service import Home, Service, program

MEMORY = "1g"
SERVER = ROOT / "spark_jobs" / "connect_server.py"
NAME = "spark-connect"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
MEMORY_SETTINGS: Mapping[str, str] = {
    # Nobody goes on reading where a landing has ended; each partition's last poll would be kept.
    "spark.kafka.consumer.cache.timeout": "1s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "1s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
    # What is kept of finished work for a page that nobody opens: a thousand of each by default.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "50",
    "spark.sql.connect.ui.retainedStatements": "50",
    "spark.sql.connect.ui.retainedSessions": "50",
}
"""With these a server's memory stays as it is, however many landings it has done."""
SETTINGS: Mapping[str, str] = {
    **MEMORY_SETTINGS,
    "spark.connect.grpc.binding.address": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.host": HOST,
    "spark.pyspark.driver.python": program("python"),
    # It would listen for everybody.
    "spark.ui.enabled": "false",
    # Logs in UTC, and times before 1900 without a shift by local mean time.
    _JAVA_OPTIONS: "-Duser.timezone=UTC",
}
# Rows die young: Java's default collector takes a fifth of the CPU more for a landing, for pauses
# that nobody feels. A Java that is told of two does not start.
_COLLECTOR = "-XX:+UseParallelGC"
_NAMES_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_TOLD_BY = (OPTIONS, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


class SparkConnect(Service):
    """The server; ready when it has done its first work, and so is warm."""

    def __init__(
        self, home: Home, master: str, *, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(home, NAME, port_names=[NAME])
        self._master = master
        self._settings = {**SETTINGS, **(settings or {})}

    @property
    @override
    def address(self) -> str:
        return f"sc://{HOST}:{self.home.ports[NAME]}"

    @property
    @override
    def memory(self) -> str:
        return f"-Xmx{MEMORY}"

    @override
    def prepare(self) -> None:
        ensure_jars("spark-kafka")

    @override
    def command(self) -> Sequence[str]:
        settings = {**self._settings, "spark.connect.grpc.binding.port": str(self.home.ports[NAME])}
        told = " ".join([settings[_JAVA_OPTIONS], *(os.environ.get(each, "") for each in _TOLD_BY)])
        if not _NAMES_COLLECTOR.search(told):
            settings[_JAVA_OPTIONS] += f" {_COLLECTOR}"
        argv = [program("spark-submit"), "--master", self._master, "--driver-memory", MEMORY]
        argv += ["--jars", connector_jars()]
        argv += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        return [*argv, str(SERVER)]

    @override
    def environment(self) -> Mapping[str, str]:
        java = str(ensure_java())
        # By 1, which is meant for clients, spark-submit takes a client's jars.
        here = {"SPARK_LOCAL_IP": HOST, "JAVA_HOME": java, "SPARK_CONNECT_MODE": "0"}
        return {**os.environ, **spark_variables(os.environ), **here}

    @override
    def missing(self) -> str | None:
        return None if answers(self.home.ports[NAME]) else "it does not accept connections"

    @override
    def provision(self) -> None:
        """Have each new server do the work that would make somebody's first landing slow."""
        if self.home.state.fact("spark_connect_warm") == self.pid:
            return
        argv = [program("python"), "-P", "-m", "sandbox.services.spark_warm_up"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        with self.log.open("ab") as log:
            done = subprocess.run(
                [*argv, str(self.folder), self.address],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=False,
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, "did not do its first work", self.log)
        self.home.state.replace("spark_connect_warm", self.pid)
