"""`read_feed`: a feed as a Spark DataFrame, file by file as the ledger has committed it.

Listing directories shows what is published, at some moment of every single listing; the ledger
shows one instant of all of it, from the commit on.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tallystick.domain.identities import FeedName
from tallystick.domain.window import Window
from tallystick.ledger.ledger import Ledger
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import feeds_folder, load_feed
from tallystick.settings.hdfs_connection import WebHdfsConnection
from tallystick.wiring.adapters import ConnectionOf, open_ledger
from tallystick.workflows.stored.current_files import current_paths

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


LANDED_SCHEMA: Final = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestamp_type INT,"
    " key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)

# What a cluster's defaults may say must not make rows vanish.
_OPTIONS: Final = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # Nothing is taken from the directories' names.
    "recursiveFileLookup": "true",
    "mergeSchema": "false",
}


def read_feed(
    spark: SparkSession,
    feed: Feed | str,
    window: Window | None = None,
    *,
    ledger: Ledger | None = None,
    connection_of: ConnectionOf | None = None,
) -> DataFrame:
    """Every committed row of the feed once, without those of replaced files.

    With a window only the batches that are labelled with an instant in it. The rows are those of
    the files as they lie now: ask again after a repair, or when a batch was published since. Raises
    FeedUnknown, ConnectionMissing, LedgerUnavailable. A feed by name is read from the folder of
    feed files, connections from the environment, unless others are given.
    """
    found = feed if isinstance(feed, Feed) else load_feed(feeds_folder(os.environ), feed)
    connections = connection_of or partial(connection_in, os.environ)
    file_system = WebHdfsConnection.of(connections(found.target.connection)).fs
    if ledger is None:
        with open_ledger(connections) as opened:
            paths = current_paths(opened, FeedName(found.name), window)
    else:
        paths = current_paths(ledger, FeedName(found.name), window)
    return landed_frame(spark, [f"{file_system}{each}" for each in paths])


def landed_frame(spark: SparkSession, uris: Sequence[str]) -> DataFrame:
    """The rows of exactly these files; without a file no rows, with the same columns.

    A file that is not there any more raises Spark's own error, now or when the rows are read.
    """
    if not uris:
        return spark.createDataFrame([], LANDED_SCHEMA)
    return spark.read.schema(LANDED_SCHEMA).options(**_OPTIONS).parquet(*uris)
