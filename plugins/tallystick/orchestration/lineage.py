"""A batch tells OpenLineage its topic, its directory, how many rows, which ranges.

Imported by OpenLineage's provider alone, where it is installed. The ledger says all of it.
"""

from __future__ import annotations

from typing import Any, Final

from airflow.providers.openlineage.extractors import OperatorLineage
from attrs import define
from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import RunFacet, output_statistics_output_dataset

from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId
from tallystick.orchestration.connections import airflow_connection, open_ledger
from tallystick.orchestration.ingest import landed_extra
from tallystick.settings.feed import Feed
from tallystick.settings.hdfs_connection import WebHdfsConnection
from tallystick.settings.kafka_connection import KafkaConnection

FACET: Final = "tallystick_batch"


@define
class BatchRunFacet(RunFacet):
    """The batch, and the offsets that it has landed."""

    batch: str
    directory: str
    """Where readers find it."""
    offsets: int
    rows: int
    holes: int
    """Offsets without a record, each with a proven cause."""
    ranges: list[dict[str, Any]]
    """[from_offset, until_offset) by generation and partition, at most 80."""
    rangesLeftOut: int


def lineage_of(feed: Feed, batch_id: str) -> OperatorLineage | None:
    """The batch's lineage, once it is committed; None before. Raises what the ledger raises."""
    with open_ledger() as ledger:
        batch = ledger.committed_batch(BatchId(batch_id))
    if batch is None:
        return None
    kafka = KafkaConnection.of(airflow_connection(feed.source.connection))
    hdfs = WebHdfsConnection.of(airflow_connection(feed.target.connection))
    server = str(kafka.properties["bootstrap.servers"]).split(",")[0].strip()
    manifest, told = batch.manifest, landed_extra([batch.plan])
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=manifest.record_count,
        size=sum(each.length_bytes for each in manifest.files),
        fileCount=len(manifest.files),
    )
    return OperatorLineage(
        inputs=[InputDataset(namespace=f"kafka://{server}", name=feed.source.topic)],
        outputs=[
            OutputDataset(
                namespace=hdfs.fs.rstrip("/"),
                name=f"{feed.target.root}/{feed.name}",
                outputFacets={"outputStatistics": statistics},
            )
        ],
        run_facets={
            FACET: BatchRunFacet(
                batch=batch_id,
                directory=str(BatchPath.of(batch.plan)),
                offsets=batch.plan.span,
                rows=manifest.record_count,
                holes=manifest.hole_count,
                ranges=told["ranges"],
                rangesLeftOut=told["ranges_left_out"],
            )
        },
    )
