"""A Spark Connect server for landings: `spark-submit --jars ... connect_server.py`.

Spark's own main class gives each session a class loader, for the JARs and Python files that it may
bring, and so compiles the code of each query anew for each session, and warms it up anew. Our
sessions bring no files: here they share what was compiled. It runs until it is ended, and never
exits with 0.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession


def serve(spark: Any) -> None:
    """Answer sessions until the JVM ends, which ends this process, too."""
    # Spark has no name for it in Python. It is what Spark's own main class starts and waits for.
    scala = getattr(spark._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    service = getattr(scala, "MODULE$")
    service.start(spark.sparkContext._jsc.sc())
    try:
        service.server().awaitTermination()
    except (Py4JError, OSError):
        sys.exit("Spark's JVM has ended")
    sys.exit("the Spark Connect service has ended")


if __name__ == "__main__":
    # A client's variable: no context is made where it is set.
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    context = SparkContext.getOrCreate()
    if (mode := context.getConf().get("spark.submit.deployMode", "client")) != "client":
        # Its token and the address that it listens on belong to the machine that starts it.
        sys.exit(f"spark.submit.deployMode is {mode}: a Spark Connect server runs in client mode")
    # Sessions are made from this one, so it has to be there before the first of them.
    serve(SparkSession(context))
