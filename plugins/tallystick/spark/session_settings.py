"""What differs from session to session: its settings, and the functions over its columns.

Settings are for the length of one piece of work; what a session had before is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# None: the setting's own default, whatever the cluster says.
DEFAULTS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        # Offsets and timestamps are columns here.
        "spark.sql.ansi.enforceReservedKeywords": None,
        # Another implementation of the sources has other columns of metadata, and other options.
        "spark.sql.sources.useV1SourceList": None,
        # Only Spark's own committer leaves nothing behind that is not whole.
        "spark.sql.sources.commitProtocolClass": None,
        "spark.sql.sources.outputCommitterClass": None,
        "spark.sql.parquet.output.committer.class": None,
    }
)
"""What no work of ours leaves to the cluster."""


class SessionChanged(RuntimeError):
    """Somebody else has changed the session that the work was done in: it may be wrong."""


@contextmanager
def session_settings(spark: SparkSession, wanted: Mapping[str, str | None]) -> Iterator[None]:
    """The session with these settings; None means the setting's own default.

    Raises SessionChanged where one of them is another at the end.
    """
    before = _set_in(spark, wanted)
    _change(spark, before, wanted)
    try:
        yield
        after = _set_in(spark, wanted)
        changed = [name for name, value in wanted.items() if after[name] != value]
        if changed:
            raise SessionChanged(f"other code has set {', '.join(changed)} meanwhile")
    finally:
        _change(spark, wanted, before)


def _set_in(spark: SparkSession, names: Iterable[str]) -> dict[str, str | None]:
    """Returns what somebody has set under these names; None: nothing."""
    all_set = getattr(spark.conf, "getAll", None)  # one question to a server; since Spark 4.0
    get = spark.conf.get if all_set is None else all_set.get
    return {name: get(name, None) for name in names}


def _change(
    spark: SparkSession, now: Mapping[str, str | None], wanted: Mapping[str, str | None]
) -> None:
    for name, value in wanted.items():
        if value == now[name]:
            continue
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


def functions_of(place: SparkSession | DataFrame) -> Any:
    """The module `pyspark.sql.functions`, of the kind of this session or frame.

    PySpark chooses by a variable of the environment, which a spark-submit of this process would
    inherit. Modules of this package are imported without Spark, too, so it is done here.
    """
    if type(place).__module__.startswith("pyspark.sql.connect"):
        from pyspark.sql.connect import functions as remote

        return remote
    from pyspark.sql import functions

    return functions
