"""A spark-submit's own jars say which Spark it would run, before anything is planned.

A connector of another version fails with a class loader's words, and only once work is claimed.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from tallystick.errors import ConfigurationError
from tallystick.spark.place import SparkPlace

_CORE: Final = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<spark>\d+\.\d+)\.\S*\.jar")
_CONNECTOR: Final = re.compile(
    r"spark-sql-kafka-0-10_(?P<scala>\d+\.\d+)-(?P<spark>\d+\.\d+)\.\S*\.jar"
)


def require_spark(place: SparkPlace, environ: Mapping[str, str], *, where: str) -> None:
    """Return unless spark-submit is of another Spark or Scala than Kafka's connector is made for.

    `where` names the connection in errors. Raises ConfigurationError with what was found, what is
    needed, and the folder. A Spark or a connector that does not show its version is let pass.
    """
    needed = next(filter(None, map(_CONNECTOR.search, place.jars)), None)
    if needed is None:
        return
    for folder in _folders(place, environ):
        found = next(filter(None, (_CORE.fullmatch(each.name) for each in folder.iterdir())), None)
        if found is None:
            continue
        if found.groups() != needed.groups():
            raise ConfigurationError(
                "the version of Spark",
                f"{found['spark']} with Scala {found['scala']} in {folder}",
                f"{needed['spark']} with Scala {needed['scala']}, for which Kafka's connector in"
                " extra jars is made; set SPARK_HOME or PATH where spark-submit is started",
                where=where,
            )
        return


def _folders(place: SparkPlace, environ: Mapping[str, str]) -> Iterator[Path]:
    """Lists where the jars may lie, in the order in which spark-submit itself looks for them."""
    if home := environ.get("SPARK_HOME"):
        yield from _there(Path(home, "jars"))
        return
    program = shutil.which(place.spark_submit, path=place.environment(environ).get("PATH"))
    if program is None:
        return
    for beside in dict.fromkeys((Path(program).parent, Path(program).resolve().parent)):
        yield from _there(beside.parent / "jars")
        for each in sorted(beside.parent.glob("lib/python*/site-packages/pyspark/jars")):
            yield from _there(each)


def _there(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield folder
