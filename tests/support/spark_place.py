"""Where tests run Spark: on this machine, with the connector's jars that set-up fetched."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from sandbox.service import QUICK_JVM
from tallystick.spark.place import SparkPlace

ROOT: Final = Path(__file__).resolve().parents[2]
JARS: Final = tuple(
    str(each) for each in sorted((ROOT / ".sandbox/jars/spark-kafka").glob("*.jar"))
)
APPLICATION: Final = ROOT / "spark_jobs" / "land.py"
PLACE: Final = SparkPlace(
    master="local[2,4]",
    jars=JARS,
    conf={"spark.driver.extraJavaOptions": " ".join(QUICK_JVM)},
    spark_submit=str(Path(sys.prefix) / "bin" / "spark-submit"),
)
