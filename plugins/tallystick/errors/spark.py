"""Errors of Spark applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.errors.ingestion import IngestionError

_NAMED: Final = 5
_READS_NOTHING: Final = (
    "It reads none of a few single offsets of the topic either, so it seems to be Spark, or what it"
    " reaches, and no record."
)


class SparkError(IngestionError):
    """Spark could not do its part."""

    reads_nothing = False
    """True where Spark can read no single offset either."""

    def describe(self) -> str:
        """Says it, too, where Spark can read nothing at all."""
        said = super().describe()
        return f"{said} {_READS_NOTHING}" if self.reads_nothing else said


class ApplicationFailed(SparkError):
    """A Spark application ended with an error."""

    next_step = (
        "Read Spark's log: above, or by the command that is named here. Nothing was committed; the"
        " next attempt starts anew."
    )
    retry = True

    said = "batch {batch}: Spark application {application} failed: {reason}."
    batch: str
    application: str
    reason: str


class BrokersUnreached(ApplicationFailed):
    """A Spark application ended because it could not reach Kafka's brokers."""

    next_step = (
        "Where the brokers run, let Spark's driver and executors reach them by the names that they"
        " advertise: look at DNS, firewalls and advertised.listeners. Nothing was committed; the"
        " next attempt starts anew."
    )


class ApplicationOverdue(SparkError):
    """A Spark application ran for longer than the feed allows, and was ended."""

    next_step = (
        "The executors' logs say what it waited for. If it only needs longer, raise"
        " spark.max_application_time in the feed file. Nothing was committed; the next attempt"
        " starts anew."
    )
    retry = True

    said = "{work}: Spark application {application} ran for longer than {longest}."
    work: str
    application: str
    longest: str


class SparkUnavailable(SparkError):
    """A Spark Connect server does not answer, or has lost the session in the middle of its work."""

    next_step = (
        "Look at the server: is it up, and has it memory left? Nothing was committed; the next"
        " attempt starts anew."
    )
    retry = True

    said = "Spark Connect server {server} can't be used now: {reason}."
    server: str
    reason: str


class SparkRefused(SparkError):
    """A Spark Connect server refuses the token, can't be trusted with it, or is no such server."""

    next_step = (
        "Correct the connection's host, port, token or use_ssl. A server whose certificate is of an"
        " authority of your own needs its file in GRPC_DEFAULT_SSL_ROOTS_FILE_PATH, where this"
        " runs."
    )

    said = "Spark Connect server {server} and its connection do not fit: {reason}."
    server: str
    reason: str


class JarNotFetched(SparkError):
    """A repository does not give a jar of Kafka's connector, or gives another file in its place."""

    next_step = (
        "Name a Maven repository that has it (--repository URL, or TALLYSTICK_MAVEN_REPOSITORY),"
        " and repeat the command: what is fetched already stays."
    )

    said = "{url} could not be fetched: {reason}."
    url: str
    reason: str


class RecordsUnreadable(SparkError):
    """Spark can't read single records of a batch. They are set aside; no other record waits."""

    next_step = (
        "The next run lands the other offsets of the batch. docs/runbook.md, A11, says what to do"
        " about these."
    )

    batch: str
    unreadable: Sequence[str]

    def sentence(self) -> str:
        """The batch, and its unreadable offsets."""
        more = len(self.unreadable) - _NAMED
        rest = f"; {more} more" if more > 0 else ""
        named = "; ".join(self.unreadable[:_NAMED])
        return f"batch {self.batch}: Spark can't read {named}{rest}."


class ScrubFailed(ApplicationFailed):
    """The Spark application that reads landed files in full ended with an error."""

    said = "scrub {batch}: Spark application {application} failed: {reason}."
    next_step = (
        "Read Spark's log: above, or by the command that is named here. Nothing was changed; what"
        " was not read is still due."
    )
