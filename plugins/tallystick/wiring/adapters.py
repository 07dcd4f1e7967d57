"""Which adapter stands behind which port for one feed, and when each of them is closed.

Connections are looked up before anything is opened: a missing one stops the story with its name.
Adapters are imported as they are opened: who asks the ledger alone needs no library of the others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

import tallystick
from tallystick.ledger.ledger import Ledger
from tallystick.ports.spark_runner import SparkRunner
from tallystick.settings.connections import Connection
from tallystick.settings.feed import Feed, FeedFile
from tallystick.settings.feeds import feed_names, feeds_folder
from tallystick.settings.hdfs_connection import WebHdfsConnection
from tallystick.settings.kafka_connection import KafkaConnection
from tallystick.settings.ledger_connection import LedgerConnection
from tallystick.settings.spark_connection import CONN_TYPE, SparkConnectConnection, session_url
from tallystick.spark.connect_server import ConnectServer
from tallystick.spark.installed_spark import require_hadoop_conf, require_kubernetes, require_spark
from tallystick.spark.kafka_access import KafkaAccess, access_from, kafka_access, secrets_text
from tallystick.spark.place import SparkPlace
from tallystick.workflows.services import Services

if TYPE_CHECKING:
    from tallystick.sources.broker_view import KafkaBrokerView

ConnectionOf = Callable[[str], Connection]
UrlOf = Callable[[str], str]
LEDGER_CONNECTION: Final = "ledger_default"
_PACKAGE: Final = Path(tallystick.__file__).resolve().parent
# What spark-submit starts lies beside plugins/ in a checkout; a wheel has no such place.
_JOBS: Final = (_PACKAGE.parents[1] / "spark_jobs", _PACKAGE / "spark" / "jobs")
LANDING_APPLICATION: Final = next((each for each in _JOBS if each.is_dir()), _JOBS[0]) / "land.py"


class WallClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The instant, in UTC."""
        return datetime.now(UTC)

    def pause(self, seconds: float) -> None:
        """Really wait."""
        time.sleep(seconds)


def new_id() -> str:
    """128 random bits: never given out twice, not even by a ledger restored from an old backup."""
    return token_hex(16)


@contextmanager
def open_ledger(connection_of: ConnectionOf) -> Iterator[Ledger]:
    """The ledger alone, closed at the end of the block; raises ConnectionMissing."""
    ledger = Ledger(ledger_dsn(connection_of))
    try:
        yield ledger
    finally:
        ledger.close()


def patient_ledger(connection_of: ConnectionOf, patience: timedelta) -> Ledger:
    """A ledger for who waits no longer for a statement: LedgerUnavailable says so then.

    Its one connection ends with it. Raises ConnectionMissing.
    """
    return Ledger(ledger_dsn(connection_of), patience)


def ledger_dsn(connection_of: ConnectionOf) -> str:
    """Where the ledger is; holds a password."""
    return LedgerConnection.of(connection_of(LEDGER_CONNECTION)).dsn


def spark_place(feed: Feed, connection_of: ConnectionOf) -> SparkPlace:
    """Where the feed's Spark applications run, and as whom they write to HDFS.

    It is the user of the WebHDFS connection: the attempt's directory is that user's. Raises
    ConfigurationError for YARN without its configuration, Kubernetes without its provider, and
    another Spark than the connector's.
    """
    user = WebHdfsConnection.of(connection_of(feed.target.connection)).user
    place = replace(SparkPlace.of(connection_of(feed.spark.connection)), hadoop_user=user)
    where = f"connection {feed.spark.connection}"
    require_hadoop_conf(place, os.environ, where=where)
    require_kubernetes(place, where=where)
    require_spark(place, os.environ, where=where)
    return place


def shipped_secrets(feed: Feed, connection_of: ConnectionOf) -> Mapping[str, str]:
    """What is shipped to Spark's Kafka client beside the plan; never for logs or arguments.

    Raises SecretsExposed where anybody could read it.
    """
    kafka = KafkaConnection.of(connection_of(feed.source.connection))
    return _access(feed, kafka, _engine(feed, connection_of)).secrets


def secrets_file(feed: Feed, connection_of: ConnectionOf) -> str:
    """The text of the file that an administrator places on Spark's nodes; empty if none is needed.

    It holds the secrets themselves.
    """
    kafka = KafkaConnection.of(connection_of(feed.source.connection))
    return secrets_text(kafka_access(kafka.properties).secrets)


def connect_server(
    feed: Feed, connection_of: ConnectionOf, url_of: UrlOf | None = None
) -> ConnectServer | None:
    """The Spark Connect server that the feed's connection names; None for one of spark-submit.

    `url_of` gives the URL of a connection by its id, as Airflow's provider makes it; without it the
    connection is read by the provider's rules.
    """
    connection = connection_of(feed.spark.connection)
    if connection.conn_type != CONN_TYPE:
        return None
    found = SparkConnectConnection.of(connection)
    url = url_of(feed.spark.connection) if url_of else found.url
    return ConnectServer(found.address, partial(session_url, url), found.kafka_secrets)


def _engine(
    feed: Feed, connection_of: ConnectionOf, url_of: UrlOf | None = None
) -> ConnectServer | SparkPlace:
    """What the feed's connection names, by its type; nothing falls back to the other."""
    return connect_server(feed, connection_of, url_of) or spark_place(feed, connection_of)


def _runner(
    feed: Feed, engine: ConnectServer | SparkPlace, secrets: Mapping[str, str]
) -> SparkRunner:
    from tallystick.spark.connect_runner import ConnectRunner
    from tallystick.spark.submit_runner import SubmitRunner

    longest = feed.spark.max_application_time
    if isinstance(engine, ConnectServer):
        return ConnectRunner(engine, feed.spark.conf, longest)
    return SubmitRunner(
        engine,
        application=LANDING_APPLICATION,
        feed_conf=feed.spark.conf,
        kafka_secrets=secrets,
        longest=longest,
    )


def _access(feed: Feed, kafka: KafkaConnection, engine: ConnectServer | SparkPlace) -> KafkaAccess:
    return access_from(engine, kafka.properties, where=f"connection {feed.spark.connection}")


def open_broker(feed: FeedFile, connection_of: ConnectionOf) -> KafkaBrokerView:
    """The Kafka of the feed, or of a group, alone; raises as `open_services`."""
    from tallystick.sources.broker_view import KafkaBrokerView

    kafka = KafkaConnection.of(connection_of(feed.source.connection))
    return KafkaBrokerView(kafka.properties, now=WallClock().now, connection=feed.source.connection)


@contextmanager
def open_services(
    feed: Feed,
    connection_of: ConnectionOf,
    spark: SparkRunner | None = None,
    url_of: UrlOf | None = None,
) -> Iterator[Services]:
    """Everything a workflow needs for one feed, closed at the end of the block.

    Without a runner, the type of the feed's Spark connection decides; `url_of` as in
    `connect_server`. Raises ConnectionMissing or
    ConfigurationError for the first connection that is missing or wrong.
    """
    from tallystick.sources.frontier_group import KafkaFrontierGroup
    from tallystick.sources.second_reader import LibrdkafkaReader
    from tallystick.storage.name_nodes import NameNodes
    from tallystick.storage.web_hdfs import WebHdfsFileStore

    kafka = KafkaConnection.of(connection_of(feed.source.connection))
    hdfs = WebHdfsConnection.of(connection_of(feed.target.connection))
    dsn = ledger_dsn(connection_of)
    engine = _engine(feed, connection_of, url_of)
    access = _access(feed, kafka, engine)
    with ExitStack() as stack:
        broker = stack.enter_context(open_broker(feed, connection_of))
        ledger = Ledger(dsn)
        stack.callback(ledger.close)
        name_nodes = NameNodes(
            hdfs.urls,
            user=hdfs.user,
            password=_told(hdfs.password),
            token=_told(hdfs.token),
            kerberos=hdfs.kerberos,
            principal=hdfs.principal,
            keytab=hdfs.keytab,
            verify=hdfs.verify,
            cert=hdfs.cert,
            where=f"connection {feed.target.connection}",
        )
        store = WebHdfsFileStore(name_nodes, hdfs.fs)
        stack.callback(store.close)
        second_reader = None
        if feed.reconcile.second_reader is not None:
            second_reader = LibrdkafkaReader(
                kafka.properties, connection=feed.source.connection, weigh=broker.weights
            )
            stack.callback(second_reader.close)
        frontier_group = None
        if feed.source.export_group is not None:
            frontier_group = KafkaFrontierGroup(
                kafka.properties, feed.source.export_group, connection=feed.source.connection
            )
        yield Services(
            feed=feed,
            ledger=ledger,
            broker=broker,
            store=store,
            spark=spark or _runner(feed, engine, access.secrets),
            clock=WallClock(),
            new_id=new_id,
            second_ledger=lambda: Ledger(dsn),
            kafka_options=access.options,
            second_reader=second_reader,
            frontier_group=frontier_group,
            declared=lambda: feed_names(feeds_folder(os.environ)),
        )


def _told(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None
