"""Sessions of a Spark Connect server: opened for one piece of work, found again, and ended.

A session bears the id that it is opened with, so whoever knows an attempt's id can end what the
attempt does there. What a server must have is asked before a session is used.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tallystick.errors import ConfigurationError, SparkUnavailable
from tallystick.spark.causes import failure_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

# What the client says when nobody answers, or the server does not know the session any more: it was
# started anew, or somebody ended the session.
_LOST: Final = ("RETRIES_EXCEEDED", "INVALID_HANDLE", "SESSION_", "UNAVAILABLE")
_TRIES: Final = 4
"""Of a request that nobody answers: about four seconds. The caller tries again later."""
_CONNECTOR: Final = "Kafka's connector (spark-sql-kafka-0-10), by the server's --jars or --packages"


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
    def shows_shipped_files(self) -> bool:
        """True: nothing can be shipped to a server that others use too."""
        return True

    @contextmanager
    def session(
        self, session_id: str, conf: Mapping[str, str], *, reads_kafka: bool
    ) -> Iterator[SparkSession]:
        """The session with this id, ended with the block; an id can be used once.

        Raises SparkUnavailable where nobody answers or the session is lost, and ConfigurationError
        for what the server lacks, or for a property that a session can't set.
        """
        spark = self._opened(session_id)
        try:
            self._require(spark, reads_kafka=reads_kafka)
            for key, value in conf.items():
                if not spark.conf.isModifiable(key):
                    raise ConfigurationError(
                        key,
                        value,
                        "a property that a session can set; set this one where the server starts",
                        where=f"spark.conf of the feed, for {self.master}",
                    )
                spark.conf.set(key, value)
            yield spark
        except Exception as error:
            if is_lost(error):
                raise SparkUnavailable(self.master, failure_of(error)) from error
            raise
        finally:
            _end(spark)

    def end_session(self, session_id: str) -> None:
        """Interrupt and end the session with this id, if it lives and somebody answers."""
        with suppress(Exception):  # an attempt that can't be interrupted can commit nothing either
            _end(self._opened(session_id))

    def _opened(self, session_id: str) -> SparkSession:
        # Half a second of imports, for those alone who land by a server.
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        spark = ConnectSession.builder.remote(self.url_of(session_id)).create()
        _try_again(spark, _TRIES)
        return spark

    def _require(self, spark: SparkSession, *, reads_kafka: bool) -> None:
        """Raise ConfigurationError for the first thing that the server lacks."""
        import pyspark

        where = f"Spark Connect server {self.master}"
        version, ours = spark.version, ".".join(pyspark.__version__.split(".")[:2])
        if version.split(".")[:2] != ours.split("."):
            raise ConfigurationError("version of Spark", version, f"{ours}.x, as here", where=where)
        speculation = spark.conf.get("spark.speculation", "false")
        if speculation != "false":
            accepted = "false: two copies of one task may both write"
            raise ConfigurationError("spark.speculation", speculation, accepted, where=where)
        if reads_kafka and not _has_connector(spark):
            raise ConfigurationError("the data source kafka", None, _CONNECTOR, where=where)


def session_of(attempt_id: str, work: str) -> str:
    """The id of the session in which an attempt does this work: a UUID, always the same one."""
    return str(uuid.uuid5(uuid.UUID(int=0), f"tallystick {attempt_id} {work}"))


def is_lost(error: BaseException) -> bool:
    """True for an error that says that the server, or its session, is gone."""
    condition = getattr(error, "getCondition", lambda: None)()
    name = type(error).__name__
    told = condition or (
        str(error) if name in ("SparkConnectGrpcException", "RetriesExceeded") else ""
    )
    return any(each in told for each in _LOST)


def _has_connector(spark: SparkSession) -> bool:
    # Analysed only: no broker is asked.
    source = spark.read.format("kafka").option("subscribe", "any")
    try:
        return bool(source.option("kafka.bootstrap.servers", "127.0.0.1:1").load().schema)
    except Exception as error:
        if is_lost(error):
            raise
        logger.warning("The server can't read Kafka: %s", failure_of(error))
        return False


def _try_again(spark: SparkSession, times: int) -> None:
    from pyspark.sql.connect.client.retries import DefaultPolicy

    spark.client.set_retry_policies([DefaultPolicy(max_retries=times)])


def _end(spark: SparkSession) -> None:
    """End what the session does, and the session: the next opener of its id is refused."""
    _try_again(spark, 0)  # whoever ends a session has no time for a server that is gone
    for each in (spark.interruptAll, spark.client.release_session, spark.client.close):
        with suppress(Exception):  # it has ended already, or nobody answers
            each()
