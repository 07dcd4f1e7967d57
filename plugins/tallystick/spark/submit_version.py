"""Which Spark, Scala and Java a spark-submit would run, asked before it is given any work.

A connector of another version fails with words about classes, and only once work is claimed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Final

from tallystick.errors import ConfigurationError
from tallystick.spark.place import SparkPlace

_SECONDS: Final = 120.0
_SPARK: Final = re.compile(r"\bversion (\d+\.\d+)(\.\S+)")
_BESIDE: Final = re.compile(r"Using Scala version (\d+\.\d+)(\S*), .*?(\d+(?:\.\S+)?)\s*$", re.M)
_CONNECTOR: Final = re.compile(r"spark-sql-kafka-0-10_(\d+\.\d+)-(\d+\.\d+)\.")


def require_version(place: SparkPlace) -> None:
    """Return if spark-submit is of the Spark and Scala that Kafka's connector was made for.

    Raises ConfigurationError with what was found, what is needed, and where. Without a connector
    that bears its version, Spark need only say which one it is, which a wrong Java keeps it from.
    """
    env = place.environment(os.environ)
    program = shutil.which(place.spark_submit, path=env.get("PATH")) or place.spark_submit
    told = _told([program, "--version"], env)
    spark, beside = _SPARK.search(told), _BESIDE.search(told)
    if not spark or not beside:
        last = next((each.strip() for each in reversed(told.splitlines()) if each.strip()), None)
        accepted = "the version of a Spark that starts here, with the Java that it needs"
        raise ConfigurationError("spark-submit --version", last, accepted, where=program)
    made_for = next(filter(None, map(_CONNECTOR.search, place.jars)), None)
    if made_for and made_for.groups() != (beside[1], spark[1]):
        raise ConfigurationError(
            "the version of Spark",
            f"{''.join(spark.groups())} (Scala {beside[1]}{beside[2]}, Java {beside[3]})",
            f"{made_for[2]}.x with Scala {made_for[1]}, for which Kafka's connector in the Spark"
            " connection's jars was made",
            where=program,
        )


def _told(command: list[str], env: dict[str, str]) -> str:
    """What it prints, errors too; nothing where there is no such program."""
    try:
        done = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout
