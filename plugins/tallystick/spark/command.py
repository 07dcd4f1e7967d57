"""Decides what Spark is told at start, for the command line and for Airflow's tasks alike.

Pure: it reads no environment, starts nothing and knows no secret. What a file must contain is
settled by the landing function itself; here is only what has to be known before a session exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tallystick.spark.application import LONGEST_SECONDS
from tallystick.spark.cluster_zip import ARCHIVE_NAME
from tallystick.spark.kafka_access import SECRETS_FILE
from tallystick.spark.place import SparkPlace
from tallystick.spark.yarn_applications import tag_of

JAVA_OPTIONS: Final = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")

SHORT_LIVED_CONSUMERS: Final[Mapping[str, str]] = {
    # The source keeps a partition's consumer, and all records of its last poll, for whoever goes
    # on reading there: for five minutes by default, and of every partition. Nobody does, beyond the
    # slices that follow one another within a landing.
    "spark.kafka.consumer.cache.timeout": "1s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "1s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
}
"""What Spark needs to forget a partition that it has read; it holds for all of a JVM's sessions."""
DEFAULTS: Final[Mapping[str, str]] = {
    **SHORT_LIVED_CONSUMERS,
    # A port that is taken would be retried one by one, each with a warning.
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
}
# A landing on one machine is over in seconds, and its UI would listen for everybody.
LOCAL_DEFAULTS: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
FIXED: Final[Mapping[str, str]] = {
    # Two copies of one task may both write.
    "spark.speculation": "false",
    # Spark's own words, and what names secrets in Kafka's options. None is ever passed; this is the
    # second wall.
    "spark.redaction.regex": (
        "(?i)secret|password|passphrase|token|credential|(access|api)[.]?key|jaas|keystore[.]key"
    ),
}
# Logs in UTC, and times before 1900 without a shift by local mean time for readers of Spark.
JAVA_TIME_ZONE: Final = "-Duser.timezone=UTC"


@dataclass(frozen=True, slots=True)
class Work:
    """An application does this; whoever looks for it later finds it by the id."""

    feed: str
    what: str
    """Such as `batch 1c0d`."""
    work_id: str
    """Of the attempt, or of the scrub."""

    @property
    def name(self) -> str:
        """Names the application."""
        return f"tallystick {self.feed} {self.what} {self.work_id}"


@dataclass(frozen=True, slots=True)
class SubmitCommand:
    """One application as the hook is told it; file names as in its working directory."""

    place: SparkPlace
    application: str
    """Path of one of spark_jobs/."""
    work: Work
    plan_uri: str
    conf: Mapping[str, str]
    py_files: str
    files: str | None
    """Shipped to every container, into its working directory."""


def submit_command(
    place: SparkPlace,
    *,
    application: str,
    work: Work,
    plan_uri: str,
    feed_conf: Mapping[str, str],
    has_secrets: bool,
    longest: timedelta,
) -> SubmitCommand:
    """The command that carries out the plan at this URI, and may take so long."""
    conf = landing_conf(place, feed_conf)
    return SubmitCommand(
        place=place,
        application=application,
        work=work,
        plan_uri=plan_uri,
        conf=conf | _tags(place, conf, work) | _bounds(place, longest),
        py_files=ARCHIVE_NAME,
        # In local mode, driver and tasks already run where the file lies.
        files=SECRETS_FILE if has_secrets and not place.is_local else None,
    )


def landing_conf(place: SparkPlace, feed_conf: Mapping[str, str]) -> dict[str, str]:
    """Spark's properties: ours, then the connection's, then the feed's, each over the one before.

    Java options of all three are joined. What the promise hangs on is set last.
    """
    local = LOCAL_DEFAULTS if place.is_local else {}
    conf = {**DEFAULTS, **local, **place.conf, **feed_conf, **FIXED}
    for key in JAVA_OPTIONS:
        given = (JAVA_TIME_ZONE, place.conf.get(key), feed_conf.get(key))
        conf[key] = " ".join(each for each in given if each)
    return conf


def _tags(place: SparkPlace, conf: Mapping[str, str], work: Work) -> dict[str, str]:
    """Returns YARN's tags of the application, and those that somebody has given it."""
    if place.master != "yarn":
        return {}
    given = conf.get("spark.yarn.tags")
    return {"spark.yarn.tags": ",".join(each for each in (given, tag_of(work.work_id)) if each)}


def _bounds(place: SparkPlace, longest: timedelta) -> dict[str, str]:
    """A driver in the cluster may outlive its spark-submit, so it ends itself; nobody starts a
    second one in its place, in the same directory; and spark-submit ends well only after it.
    """
    if place.deploy_mode == "client":
        return {}
    return {
        LONGEST_SECONDS: str(longest.total_seconds()),
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.submit.waitAppCompletion": "true",
        "spark.kubernetes.submission.waitAppCompletion": "true",
    }
