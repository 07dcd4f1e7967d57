"""How fast one process without Spark and without proof could be: librdkafka in, pyarrow out.

`ceiling.py SERVERS TOPIC UNTIL-OFFSETS-AS-JSON DIRECTORY`. It keeps topic, partition, offset, time,
key and value of each record, and no headers: more than that no engine can do for less.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
ROWS_PER_GROUP = 300_000


def main(servers: str, topic: str, until_offsets: str, directory: str) -> None:
    """Read from 0 up to the given offset of each partition, write one file."""
    until = {int(each): end for each, end in json.loads(until_offsets).items()}
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "ceiling",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "check.crcs": True,
            "queued.min.messages": 1_000_000,
        }
    )
    consumer.assign([TopicPartition(topic, each, 0) for each, end in until.items() if end])
    left, rows = sum(until.values()), []
    file = Path(directory) / "part-0.parquet"
    codec = {"compression": "zstd", "compression_level": 1, "write_page_checksum": True}
    with pq.ParquetWriter(file, SCHEMA, **codec) as writer:
        while left:
            for each in consumer.consume(10_000, 10):
                if each.error():
                    raise SystemExit(str(each.error()))
                kind, time = each.timestamp()
                rows.append(
                    (topic, each.partition(), each.offset(), time, kind, each.key(), each.value())
                )
                left -= 1
            if len(rows) >= ROWS_PER_GROUP or not left:
                columns = [
                    pa.array(column, field.type)
                    for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)
                ]
                writer.write_table(pa.table(columns, SCHEMA))
                rows.clear()
    consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
