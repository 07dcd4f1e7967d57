"""An application that spark-submit starts lives with its JVM, and tells the runner lines."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

from tallystick.spark.parent_death import die_with_parent
from tallystick.spark.session_settings import DEFAULTS, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LONGEST_SECONDS: Final = "spark.tallystick.longestSeconds"
"""The property that says how long a driver may go on of which no other process can tell."""


def run(kind: str, work: Callable[[SparkSession, str], str]) -> NoReturn:
    """Carry out the plan whose URI is the only argument, and exit.

    `work` gets the plan's text, and returns the last line to say. Exit code 1 means that it failed,
    which a line beginning with `kind` has told, and that nothing of its output may be used.
    """
    # A driver that is busy in plain Python code would outlive its killed JVM. One that was dead
    # even before it was asked for is found out by its gateway, which does not answer.
    die_with_parent(os.getppid())
    [uri] = sys.argv[1:]
    sys.exit(_exit_code(kind, work, uri))


def say(line: str) -> None:
    """Write one line at once: the runner reads along."""
    sys.stdout.write(f"tallystick: {line}\n")
    sys.stdout.flush()


def end_after(seconds: float, kind: str) -> None:
    """End this process then, whatever it does: a driver in a cluster outlives its spark-submit."""

    def end() -> None:
        say(f"{kind} failed: the application has run for {seconds} seconds, and ends itself")
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def _exit_code(kind: str, work: Callable[[SparkSession, str], str], uri: str) -> int:
    # These imports take a second, and the guard comes before all that takes time.
    from pyspark.sql import SparkSession

    from tallystick.spark.causes import failure_of

    spark = SparkSession.builder.getOrCreate()
    try:
        say(f"application {spark.conf.get('spark.app.id')}")
        if longest := spark.conf.get(LONGEST_SECONDS, None):
            end_after(float(longest), kind)
        done = work(spark, spark.read.text(uri, wholetext=True).head().value)
    except Exception as error:  # noqa: BLE001 - the edge: whatever it is, say it and fail
        say(f"{kind} failed: {failure_of(error)}")
        return 1
    finally:
        spark.stop()
    say(done)
    return 0


def write_text(spark: SparkSession, text: str, output: str, replication: int | None) -> None:
    """Write the line; the directory must not exist."""
    options = {
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "fs.hdfs.impl.disable.cache": "true",
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    }
    if replication is not None:
        options["dfs.replication"] = str(replication)
    frame = spark.createDataFrame([(text,)], "value STRING").coalesce(1)
    with session_settings(spark, DEFAULTS):
        frame.write.mode("error").options(**options).text(output)
