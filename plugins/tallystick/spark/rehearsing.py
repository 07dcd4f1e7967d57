"""Rehearses a landing: says who Spark is, tries each broker, and writes that as one small file.

It uses the DataFrame API only, as the landing does, and decides nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tallystick.domain.batches.rehearsal import RehearsalPlan, Rehearsed
from tallystick.spark.causes import record_failure_of
from tallystick.spark.landing import CONSUMER_DEFAULTS
from tallystick.spark.text_result import write_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A broker that our own client has just reached answers at once, or another address was asked.
_IMPATIENT: Final = {
    "kafka.default.api.timeout.ms": "10000",
    "kafka.request.timeout.ms": "8000",
    "kafkaConsumer.pollTimeoutMs": "10000",
    "fetchOffset.numRetries": "1",
    "failOnDataLoss": "false",
}
_WHO: Final = """
    SELECT reflect('scala.util.Properties', 'versionNumberString') AS scala,
           reflect('java.lang.System', 'getProperty', 'java.version') AS java,
           reflect('org.apache.hadoop.security.UserGroupInformation', 'getCurrentUser') AS user
"""


def rehearse(spark: SparkSession, plan: RehearsalPlan) -> None:
    """Return when the file is written; raises what Spark raises."""
    who = spark.sql(_WHO).head()
    assert who is not None
    user = str(who["user"]).partition(" ")[0]  # root (auth:SIMPLE)
    said = Rehearsed(spark.version, who["scala"], who["java"], user, _unread(spark, plan))
    write_text(spark, said.to_json(), plan.output, plan.replication)


def _unread(spark: SparkSession, plan: RehearsalPlan) -> str | None:
    """Why not every broker's partition can be read from its end; None where each can."""
    if not plan.from_offsets:
        return None
    fixed = {
        "assign": json.dumps({plan.topic: sorted(plan.from_offsets)}),
        "startingOffsets": json.dumps({plan.topic: plan.from_offsets}),
        # The latest one, which the executor asks for itself.
        "endingOffsets": json.dumps({plan.topic: dict.fromkeys(plan.from_offsets, -1)}),
    }
    layers = (CONSUMER_DEFAULTS, plan.kafka_options, _IMPATIENT, fixed)
    options = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    source = spark.read.format("kafka").options(**dict(options.values()))
    try:
        source.load().select("offset").write.format("noop").mode("overwrite").save()
    except Exception as error:  # noqa: BLE001 - whatever Kafka's client says is what is asked for
        return record_failure_of(error)
    return None
