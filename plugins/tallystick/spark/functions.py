"""The functions over columns that fit a frame: a session of a server has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
