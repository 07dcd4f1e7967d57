"""read_feed: exactly the committed, unretracted rows, whatever lies beside them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.cli.stage import Stage
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.window import Window
from tallystick.settings.connections import Connection
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tallystick.wiring.reading import LANDED_SCHEMA, landed_frame, read_feed
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.stored.current_files import current_paths
from tests.support.command_line import FEED_FILE
from tests.support.repaired import repaired
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import FEED, Story

OWNER = Owner("test")
SIX = Window(datetime(2026, 11, 1, 6, tzinfo=UTC), datetime(2026, 11, 1, 7, tzinfo=UTC))
SEVEN = Window(SIX.until_instant, datetime(2026, 11, 1, 8, tzinfo=UTC))


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[0].append(Kind.CONTROL, 1)
    broker.logs[1].append(Kind.RECORD, 7)
    return Story(ledger_databases(), tmp_path, broker)


def frame(spark: SparkSession, story: Story, window: Window | None = None) -> DataFrame:
    services = story.services()
    paths = current_paths(services.ledger, FEED, window)
    return landed_frame(spark, [services.store.uri(each) for each in paths])


def offsets(found: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in found.collect())


def span(partition: int, from_offset: int, until_offset: int) -> list[tuple[int, int]]:
    return [(partition, offset) for offset in range(from_offset, until_offset)]


def test_a_feed_that_has_landed_nothing_is_an_empty_frame(
    spark: SparkSession, story: Story
) -> None:
    found = frame(spark, story)
    assert found.count() == 0
    assert found.schema == spark.createDataFrame([], LANDED_SCHEMA).schema
    land_feed(story.services(), None, OWNER)
    assert frame(spark, story).schema == found.schema


def test_every_committed_row_is_there_once(spark: SparkSession, story: Story) -> None:
    land_feed(story.services(), SIX, OWNER)
    story.broker.logs[1].append(Kind.RECORD, 3)
    land_feed(story.services(), SEVEN, OWNER)
    assert offsets(frame(spark, story)) == span(0, 0, 10) + span(1, 0, 10)
    assert offsets(frame(spark, story, SIX)) == span(0, 0, 10) + span(1, 0, 7)
    assert offsets(frame(spark, story, SEVEN)) == span(1, 7, 10)
    later = Window(SEVEN.until_instant, datetime(2026, 11, 1, 9, tzinfo=UTC))
    assert offsets(frame(spark, story, later)) == []
    (file, *_) = sorted((story.directory / "landing" / FEED).rglob("*.parquet"))
    (file.parent / "stray.parquet").write_bytes(file.read_bytes())
    assert len(offsets(frame(spark, story))) == 20


def test_what_is_committed_and_not_published_is_read_from_staging(
    spark: SparkSession, story: Story
) -> None:
    services = story.services()
    (batch,) = plan_feed(services, SIX, OWNER).all_batches
    attempt = land_batch(services, batch.batch_id, AttemptId(services.new_id()), OWNER)
    assert attempt
    assert offsets(frame(spark, story)) == []
    verify_and_commit(services, attempt)
    assert story.published_offsets() == {}
    assert offsets(frame(spark, story)) == span(0, 0, 10) + span(1, 0, 7)


def test_rows_of_a_replaced_file_are_gone(spark: SparkSession, story: Story) -> None:
    services = story.services(max_records_per_batch=10)
    land_feed(services, SIX, OWNER)
    repaired(services, services.ledger.files(FEED)[0])
    assert offsets(frame(spark, story)) == span(0, 0, 10) + span(1, 0, 7)
    assert offsets(frame(spark, story, SIX)) == span(0, 0, 10) + span(1, 0, 7)


def test_the_listed_files_are_the_ones_that_are_read(
    spark: SparkSession, story: Story, tmp_path: Path
) -> None:
    """What `files --json` lists, read by pyarrow, is what Spark reads."""
    services = story.services(max_records_per_batch=4)
    land_feed(services, SIX, OWNER)
    repaired(services, services.ledger.files(FEED)[0])
    folder = tmp_path / "feeds"
    folder.mkdir()
    (folder / "orders.yaml").write_text(FEED_FILE.format(name="orders", until="now"))
    stage = Stage(environ={"TALLYSTICK_FEEDS": str(folder), "LEDGER_DSN": story.dsn})
    told = CliRunner().invoke(app, ["files", "orders", "--json"], obj=stage)
    assert told.exit_code == 0, told.stderr
    paths = {each["path"] for each in json.loads(told.stdout)["files"]}
    assert paths == set(current_paths(story.services().ledger, FEED))
    assert len(paths) > 3
    assert sorted(row for path in paths for row in rows_in(story, path)) == offsets(
        frame(spark, story)
    )


def rows_in(story: Story, path: str) -> list[tuple[int, int]]:
    """Partition and offset of every row of the file, by pyarrow."""
    local = story.directory / path.lstrip("/")
    found = pq.read_table(local, columns=["partition", "offset"], partitioning=None)
    return list(zip(found["partition"].to_pylist(), found["offset"].to_pylist(), strict=True))


def test_a_file_that_is_gone_is_an_error_and_no_missing_rows(
    spark: SparkSession, story: Story
) -> None:
    land_feed(story.services(), SIX, OWNER)
    found = frame(spark, story)
    for file in (story.directory / "landing" / FEED).rglob("*.parquet"):
        file.unlink()
    with pytest.raises(Exception, match=r"(?i)exist"):
        found.collect()


def test_a_feed_is_read_from_hdfs_by_its_connections(
    spark: SparkSession, story: Story, hdfs: Any, tmp_path: Path
) -> None:
    store = WebHdfsFileStore(NameNodes([hdfs.webhdfs_url], user=hdfs.user), hdfs.hdfs_url)
    services = story.services()
    root = f"/reading/{services.new_id()}"
    target = services.feed.target.model_copy(update={"root": root})
    feed = services.feed.model_copy(update={"target": target})

    def connection_of(conn_id: str) -> Connection:
        assert conn_id == feed.target.connection
        host, port = hdfs.webhdfs_url.removeprefix("http://").split(":")
        extra = {"fs": hdfs.hdfs_url}
        return Connection(conn_id, "webhdfs", host, int(port), hdfs.user, extra=extra)

    def read(window: Window | None = None) -> DataFrame:
        return read_feed(spark, feed, window, ledger=services.ledger, connection_of=connection_of)

    assert offsets(read()) == []
    landing = replace(services, feed=feed, store=store, spark=ScriptedSpark(story.broker, store))
    report = land_feed(landing, SIX, OWNER)
    assert not report.errors
    assert offsets(read()) == span(0, 0, 10) + span(1, 0, 7)
    assert offsets(read(SEVEN)) == []
    store.close()
