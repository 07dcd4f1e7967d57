"""Each supported Spark 4 by Spark Connect: a server and a client of that Spark do all the work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from sandbox.services.spark_connect import SparkConnect
from tallystick.spark.connector_download import CONNECTORS
from tests.sparks.conftest import OneSpark
from tests.support.connect_servers import ColdServer, server_of_its_own
from tests.support.kafka_producers import AWKWARD, NANOSECONDS, Message, messages, produce
from tests.support.kafka_topics import ANY_TIME_FOR_EVER, create_topic
from tests.support.repository import ROOT
from tests.support.whole_way import Way, environ_of
from tests.trouble.command import Command, Folder

WITH_CONNECT = [minor for minor in CONNECTORS if minor != "3.5"]
pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.parametrize("one_spark", WITH_CONNECT, indirect=True),
]


class OtherServer(ColdServer):
    """A server of another Spark than the test run's."""

    def __init__(self, *args: Any, spark: OneSpark, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._spark = spark

    @override
    def command(self) -> Sequence[str]:
        [_, *argv] = super().command()
        argv[argv.index("--jars") + 1] = ",".join(self._spark.jars)
        return [str(self._spark.home / "bin" / "spark-submit"), *argv]

    @override
    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "SPARK_HOME": str(self._spark.home)}


@pytest.fixture
def server(one_spark: OneSpark, tmp_path: Path) -> Iterator[SparkConnect]:
    with server_of_its_own(tmp_path / "server", partial(OtherServer, spark=one_spark)) as own:
        yield own


@pytest.fixture
def way(one_spark: OneSpark, server: SparkConnect, kafka: str, hdfs: Any, ledger_dsn: str) -> Way:
    client = os.pathsep.join([str(one_spark.home.parent), str(ROOT / "plugins")])
    environ = environ_of(kafka, hdfs, ledger_dsn, server.address) | {"PYTHONPATH": client}
    return Way(create_topic(kafka, partitions=2, config=ANY_TIME_FOR_EVER), environ)


def test_it_lands_reads_in_full_and_names_the_record_that_it_cannot_read(
    way: Way, kafka: str, tmp_path: Path
) -> None:
    folder = Folder(tmp_path / "feeds")
    folder.write(way.feed())

    def asked(*arguments: str) -> tuple[int, str]:
        command = Command(folder, way.environ, arguments[0], way.name, *arguments[1:]).ended()
        return command.code, command.out + command.err

    produce(kafka, way.topic, AWKWARD, partition=1)
    produce(kafka, way.topic, messages(300), partition=0)

    assert asked("land")[0] == 0
    assert way.rows() == way.produced({0: (0, 300), 1: (0, len(AWKWARD))})
    assert asked("reconcile", "--level", "3")[0] == 0
    produce(kafka, way.topic, [Message(b"bad", timestamp_ms=NANOSECONDS), *messages(20)])

    for expected, told in ((3, "long overflow"), (3, "Spark can't read"), (0, "20 rows")):
        code, said = asked("land")
        assert code == expected, said
        assert told in said, said
    offsets = [each.offset for each in way.rows() if each.partition == 0]
    assert offsets == [*range(300), *range(301, 321)]
