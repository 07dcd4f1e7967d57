"""What spark-submit needs of its machine is looked for before anything is planned.

A connector of another version than Spark's own jars fails with a class loader's words, and only
once work is claimed. Without a configuration of YARN spark-submit asks 0.0.0.0 for minutes, and
ends as if it were down.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from tallystick.errors import ConfigurationError
from tallystick.spark.place import SparkPlace

_CORE: Final = re.compile(r"spark-core_(?P<scala>\d+\.\d+)-(?P<spark>\d+\.\d+)\.\S*\.jar")
_CONNECTOR: Final = re.compile(
    r"spark-sql-kafka-0-10_(?P<scala>\d+\.\d+)-(?P<spark>\d+\.\d+)\.\S*\.jar"
)
VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_EXTRA: Final = "extra hadoop-conf-dir"
_SITE: Final = "yarn-site.xml"
_KUBERNETES: Final = "apache-airflow-providers-cncf-kubernetes"


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


def require_kubernetes(place: SparkPlace, *, where: str) -> None:
    """Return when the provider's hook can serve the master.

    `where` names the connection in errors. Raises ConfigurationError.
    """
    if place.is_on_kubernetes:
        try:
            version(_KUBERNETES)
        except PackageNotFoundError:
            accepted = f"one that Airflow's Spark provider needs for {place.master}"
            raise ConfigurationError(
                f"package {_KUBERNETES}", None, accepted, where=where
            ) from None


def require_hadoop_conf(place: SparkPlace, environ: Mapping[str, str], *, where: str) -> None:
    """Return when the directories that are named have what the master needs.

    `where` names the connection in errors. Raises ConfigurationError.
    """
    given = {_EXTRA: place.hadoop_conf} if place.hadoop_conf else _given_in(environ, place)
    for name, path in given.items():
        if not Path(path).is_dir():
            raise ConfigurationError(name, path, "a directory on this machine", where=where)
    if place.master != "yarn" or any((Path(path) / _SITE).is_file() for path in given.values()):
        return
    name, value = next(iter(given.items()), (VARIABLES[0], None))
    accepted = (
        f"a directory with the cluster's {_SITE}, in {' or '.join(VARIABLES)} of the process that"
        f" runs spark-submit, or in the connection's {_EXTRA}"
    )
    raise ConfigurationError(name, value, accepted, where=where)


def _given_in(environ: Mapping[str, str], place: SparkPlace) -> Mapping[str, str]:
    """Returns what the environment says, where it matters: others may need it for other things."""
    if place.master != "yarn":
        return {}
    return {name: environ[name] for name in VARIABLES if environ.get(name)}
