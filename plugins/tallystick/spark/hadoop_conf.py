"""A master's configuration is looked for, where spark-submit runs, before anything is planned.

Without a configuration of YARN spark-submit asks 0.0.0.0 for minutes, and ends as if it were down.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from tallystick.errors import ConfigurationError
from tallystick.spark.place import SparkPlace

VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
_EXTRA: Final = "extra hadoop-conf-dir"
_SITE: Final = "yarn-site.xml"
_KUBERNETES: Final = "apache-airflow-providers-cncf-kubernetes"


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
