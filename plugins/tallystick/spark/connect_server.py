"""Sessions of a Spark Connect server: opened for one piece of work, found again, and ended.

A session bears the id that it is opened with, so whoever knows an attempt's id can end what the
attempt does there. What a server must have is asked before a session is used. A request has no
time-out of its own; closing the channel ends every request that is on its way.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tallystick.errors import ConfigurationError
from tallystick.spark.causes import failure_of
from tallystick.spark.connect_errors import has_ended, server_error
from tallystick.spark.without_pandas import pandas_left_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

_TRIES: Final = 4
"""Of a request that nobody answers: about four seconds. The caller tries again later."""
_ENDING_SECONDS: Final = 10.0
"""As long as a session is being ended, at most: a server that is frozen answers nothing."""
# What a client leaves for the end of the process, in PySpark 4.0, 4.1 and 4.2.
_AT_EXIT: Final = ("_cleanup_ml", "_cleanup_ml_cache", "_on_exit")
_MOMENT_SECONDS: Final = 0.5
"""Until a request that was interrupted is in a state in which it can be closed."""
_NO_SOURCE: Final = ("DATA_SOURCE_NOT_FOUND", "Failed to find data source: kafka")
_NO_SUCH_PLACE: Final = ("No FileSystem for scheme", "UnknownHostException")
_REQUIRED: Final = MappingProxyType(
    {
        "spark.speculation": ("false", "two copies of one task may both write"),
        "spark.connect.execute.reattachable.enabled": (
            "true",
            "the client would send a request again whose answer it has lost",
        ),
    }
)
"""Settings of a server, each with what it has to be and why; both are Spark's defaults."""
_CONNECTOR: Final = "Kafka's connector (spark-sql-kafka-0-10), by the server's --jars or --packages"


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session, and what ends it from another thread."""

    session_id: str
    spark: SparkSession
    close: Callable[[], None]
    """End all its requests at once, and refuse every later one."""


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """A server, and as whom it is asked."""

    master: str
    """Its address, `sc://host:port`, without anything that is secret."""
    url_of: Callable[[str], str] = field(repr=False)
    """The URL of the session with this id; it may hold a token."""
    kafka_secrets: str | None = None
    """Absolute path of the file with Kafka's secrets on its machines; None: there is none."""

    @property
    def needs_placed_secrets(self) -> bool:
        """True: what a session is sent, others who use the server may read."""
        return True

    @property
    def ships_files(self) -> bool:
        """False: a server runs already when a session begins."""
        return False

    @contextmanager
    def session(
        self,
        session_id: str,
        conf: Mapping[str, str],
        *,
        reads_kafka: bool,
        reaches: str | None = None,
        opened: Callable[[OpenSession], None] = lambda _: None,
        is_opened_again: bool = False,
    ) -> Iterator[SparkSession]:
        """The session with this id; it ends with the block, and its id is used up.

        `reaches` is the URI of a file that the server must see. `opened` hears of the session
        before the server is asked anything. One that is opened again keeps its id. Raises
        SparkUnavailable where nobody answers or the session is lost, SparkRefused where the token
        or the certificate is refused, and ConfigurationError for what the server lacks, or for a
        property that a session can't set.
        """
        session = self._opened(session_id, _TRIES)
        is_idle = False
        try:
            opened(session)
            self._prepare(session.spark, conf, reads_kafka=reads_kafka, reaches=reaches)
            yield session.spark
            is_idle = True
        except Exception as error:
            told = server_error(self.master, error)
            if told is None:
                raise
            raise told from error
        finally:
            is_used_up = not is_opened_again
            # Work that goes on is ended by another client: this one's may be closed already.
            if not (is_idle and self._ended(session, is_idle=True, is_used_up=is_used_up)):
                session.close()
                self._end(session_id, is_used_up=is_used_up)

    def end_session(self, session_id: str) -> bool:
        """End what the session with this id does; its id is used up. False: nobody has answered.

        Raises nothing: an attempt that can't be interrupted can commit nothing either.
        """
        return self._end(session_id, is_used_up=True)

    def _end(self, session_id: str, *, is_used_up: bool) -> bool:
        """End what the session does, by a client of its own."""
        try:
            session = self._opened(session_id, 1)
        except Exception as error:  # noqa: BLE001 - an address that the client can't read
            logger.warning("%s: session %s is not ended: %s", self.master, session_id, error)
            return False
        return self._ended(session, is_idle=False, is_used_up=is_used_up)

    def _ended(self, session: OpenSession, *, is_idle: bool, is_used_up: bool) -> bool:
        """False: nobody has answered. The client is closed in any case."""
        late = threading.Timer(_ENDING_SECONDS, session.close)
        late.daemon = True
        late.start()
        try:
            if not is_idle:
                session.spark.interruptAll()
            if is_used_up:
                _release(session.spark)
        except Exception as error:  # noqa: BLE001 - it has ended already, or nobody answers
            if has_ended(error):
                return True
            why = server_error(self.master, error) or error
            logger.info("%s: session %s is not ended: %s", self.master, session.session_id, why)
            return False
        else:
            return True
        finally:
            late.cancel()
            session.close()

    def _opened(self, session_id: str, tries: int) -> OpenSession:
        # A long import, for those alone who land by a server.
        with pandas_left_out():
            from pyspark.sql.connect.client.core import DefaultChannelBuilder
            from pyspark.sql.connect.client.retries import DefaultPolicy
            from pyspark.sql.connect.session import SparkSession as ConnectSession

        class Builder(DefaultChannelBuilder):
            """Shows the channel that it has built: the client closes its own only after waiting."""

            channel: Any = None

            def toChannel(self) -> Any:
                self.channel = super().toChannel()
                return self.channel

        builder = Builder(self.url_of(session_id))
        # As the clients of Kafka and HDFS: a proxy for the web is none for a cluster.
        builder.setChannelOption("grpc.enable_http_proxy", 0)
        spark = ConnectSession.builder.channelBuilder(builder).create()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=tries)])

        def close_client() -> None:
            with suppress(Exception):
                builder.channel.close()
            # Each client would stay in memory as long as this process lives.
            for name in _AT_EXIT:
                if registered := getattr(spark.client, name, None):
                    atexit.unregister(registered)

        def close() -> None:
            close_client()  # at once: to stop it takes a lock
            # From Spark 4.1 on the first session of a thread stays the one that it asks to read a
            # schema's text, however many come after it, until it is stopped.
            with suppress(Exception):
                spark.stop()

        # A session that is cleared away, whenever that is, closes its client, and with it the
        # threads that release the answers of all others: their requests would fail.
        spark.client.close = close_client
        # Its id is used up by whoever wants that.
        spark.release_session_on_close = False
        return OpenSession(session_id, spark, close)

    def _prepare(
        self,
        spark: SparkSession,
        conf: Mapping[str, str],
        *,
        reads_kafka: bool,
        reaches: str | None,
    ) -> None:
        """Set the properties; raise ConfigurationError for the first thing that is wrong."""
        import pyspark

        where = f"Spark Connect server {self.master}"
        # All at once: each answer takes the server longer than the way there and back.
        with ThreadPoolExecutor(5, thread_name_prefix="session") as pool:
            told_version = pool.submit(lambda: spark.version)
            told = {
                key: pool.submit(spark.conf.get, key, value)
                for key, (value, _) in _REQUIRED.items()
            }
            connector = pool.submit(_has_connector, spark) if reads_kafka else None
            sees = pool.submit(_sees, spark, reaches) if reaches else None
        version, ours = told_version.result(), ".".join(pyspark.__version__.split(".")[:2])
        if version.split(".")[:2] != ours.split("."):
            raise ConfigurationError("version of Spark", version, f"{ours}.x, as here", where=where)
        for key, (value, why) in _REQUIRED.items():
            if (is_set := told[key].result()) != value:
                raise ConfigurationError(key, is_set, f"{value}: {why} otherwise", where=where)
        if connector and not connector.result():
            raise ConfigurationError("the data source kafka", None, _CONNECTOR, where=where)
        if sees and not sees.result():
            accepted = "one that the Spark Connect server knows and reaches"
            raise ConfigurationError("the target's file system", reaches, accepted)
        for key, value in conf.items():
            if key in _REQUIRED:
                continue  # a feed may only say what is required
            if not spark.conf.isModifiable(key):
                accepted = "a property that a session can set; set this one where the server starts"
                feed = f"spark.conf of the feed, for {self.master}"
                raise ConfigurationError(key, value, accepted, where=feed)
            spark.conf.set(key, value)


def session_of(attempt_id: str, work: str) -> str:
    """The id of the session in which an attempt does this work: a UUID, always the same one."""
    return str(uuid.uuid5(uuid.UUID(int=0), f"tallystick {attempt_id} {work}"))


def _release(spark: SparkSession) -> None:
    """Use the session's id up. A server may refuse it while a request is being interrupted."""
    try:
        spark.client.release_session()
    except Exception:  # noqa: BLE001 - the second answer is the one that counts
        time.sleep(_MOMENT_SECONDS)
        spark.client.release_session()


def _has_connector(spark: SparkSession) -> bool:
    # Analysed only: no broker is asked.
    source = spark.read.format("kafka").option("subscribe", "any")
    try:
        return bool(source.option("kafka.bootstrap.servers", "127.0.0.1:1").load().schema)
    except Exception as error:
        if not any(each in str(error) for each in _NO_SOURCE):
            raise
        return False


def _sees(spark: SparkSession, uri: str) -> bool:
    """False where the server does not know the URI's file system, or can't reach it."""
    try:
        # Analysed only: the file is looked for, and not read.
        return bool(spark.read.text(uri).schema)
    except Exception as error:
        if not any(each in str(error) for each in _NO_SUCH_PLACE):
            raise
        logger.warning("%s can't be read by the server: %s", uri, failure_of(error))
        return False
