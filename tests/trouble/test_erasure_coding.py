"""Erasure coding: rows that lie in stripes are landed, read back, compared, and still there when
a DataNode is lost; rows that were copied into stripes are the rows that were committed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict
from tests.support.kafka_producers import messages, produce
from tests.support.striped_hdfs import StripedHdfs, hdfs_with_three_data_nodes
from tests.support.whole_way import Way
from tests.trouble.scene import NewScene

RECORDS = 200


@pytest.fixture(scope="module")
def striped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StripedHdfs]:
    with hdfs_with_three_data_nodes(tmp_path_factory.mktemp("striped") / "hdfs") as running:
        yield running


@pytest.fixture
def way(striped: StripedHdfs, new_scene: NewScene, spark: SparkSession) -> Way:
    """A feed with a topic of its own, onto the HDFS of three DataNodes."""
    scene = new_scene()
    place = striped.place
    environ = {**scene.environ, "WEBHDFS_URL": place.webhdfs_url, "HDFS_URL": place.hdfs_url}
    way = Way(scene.topic, environ, spark)
    produce(environ["KAFKA_BOOTSTRAP_SERVERS"], way.topic, messages(RECORDS))
    return way


def test_what_was_copied_into_stripes_is_what_was_committed(way: Way, striped: StripedHdfs) -> None:
    way.landed()
    assert way.reconciled().verdict is Verdict.PROVEN_OK
    feed, aside = f"{way.root}/{way.name}", f"/aside-{way.name}"
    striped.shell("-mv", feed, aside)
    striped.put_in_stripes(feed)
    striped.shell("-cp", f"{aside}/*", feed)
    striped.shell("-rm", "-r", "-skipTrash", aside)

    report = way.reconciled()
    assert report.verdict is Verdict.UNKNOWN, "its bytes were not read yet"
    assert way.reconciled(Level.L3).verdict is Verdict.PROVEN_OK
    assert way.reconciled().verdict is Verdict.PROVEN_OK
    assert way.rows() == way.produced({0: (0, RECORDS)})


def test_a_root_in_stripes_is_landed_into_and_outlives_a_data_node(
    way: Way, striped: StripedHdfs
) -> None:
    striped.put_in_stripes(way.root)
    way.landed()
    assert way.reconciled(Level.L4).verdict is Verdict.PROVEN_OK

    striped.lose_a_data_node()

    assert way.reconciled(Level.L3).verdict is Verdict.PROVEN_OK
    assert way.rows() == way.produced({0: (0, RECORDS)})
