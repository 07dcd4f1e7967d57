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

    reads_nothing: bool = False
    """True where Spark can read no single offset either."""

    def describe(self) -> str:
        """Says it, too, where Spark can read nothing at all."""
        said = super().describe()
        return f"{said} {_READS_NOTHING}" if self.reads_nothing else said


class ApplicationFailed(SparkError):
    """A Spark application ended with an error."""

    work = "batch"
    next_step = (
        "Read Spark's log: above, or by the command that is named here. Nothing was committed; the"
        " next attempt starts anew."
    )
    retry = True

    def __init__(self, batch: str, application: str, reason: str) -> None:
        super().__init__(batch, application, reason)

    def sentence(self) -> str:
        """The batch, the application, its last words."""
        what, application, reason = self.args
        return f"{self.work} {what}: Spark application {application} failed: {reason}."


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

    def __init__(self, work: str, application: str, longest: str) -> None:
        super().__init__(work, application, longest)

    def sentence(self) -> str:
        """What it worked on, the application, how long it may take."""
        work, application, longest = self.args
        return f"{work}: Spark application {application} ran for longer than {longest}."


class SparkUnavailable(SparkError):
    """A Spark Connect server does not answer, or has lost the session in the middle of its work."""

    next_step = (
        "Look at the server: is it up, and has it memory left? Nothing was committed; the next"
        " attempt starts anew."
    )
    retry = True

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(server, reason)

    def sentence(self) -> str:
        """The server, and what was heard of it."""
        server, reason = self.args
        return f"Spark Connect server {server} can't be used now: {reason}."


class SparkRefused(SparkError):
    """A Spark Connect server refuses the token, can't be trusted with it, or is no such server."""

    next_step = (
        "Correct the connection's host, port, token or use_ssl. A server whose certificate is of an"
        " authority of your own needs its file in GRPC_DEFAULT_SSL_ROOTS_FILE_PATH, where this"
        " runs."
    )

    def __init__(self, server: str, reason: str) -> None:
        super().__init__(server, reason)

    def sentence(self) -> str:
        """The server, and what was said when it was asked."""
        server, reason = self.args
        return f"Spark Connect server {server} and its connection do not fit: {reason}."


class JarNotFetched(SparkError):
    """A repository does not give a jar of Kafka's connector, or gives another file in its place."""

    next_step = (
        "Name a Maven repository that has it (--repository URL, or TALLYSTICK_MAVEN_REPOSITORY),"
        " and repeat the command: what is fetched already stays."
    )

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)

    def sentence(self) -> str:
        """The file's URL without password, and what was wrong."""
        url, reason = self.args
        return f"{url} could not be fetched: {reason}."


class RecordsUnreadable(SparkError):
    """Spark can't read single records of a batch. They are set aside; no other record waits."""

    next_step = (
        "The next run lands the other offsets of the batch. docs/runbook.md, A11, says what to do"
        " about these."
    )

    def __init__(self, batch: str, unreadable: Sequence[str]) -> None:
        super().__init__(batch, unreadable)

    def sentence(self) -> str:
        """The batch, and its unreadable offsets."""
        batch, unreadable = self.args
        more = len(unreadable) - _NAMED
        rest = f"; {more} more" if more > 0 else ""
        return f"batch {batch}: Spark can't read {'; '.join(unreadable[:_NAMED])}{rest}."


class ScrubFailed(ApplicationFailed):
    """The Spark application that reads landed files in full ended with an error."""

    work = "scrub"
    next_step = (
        "Read Spark's log: above, or by the command that is named here. Nothing was changed; what"
        " was not read is still due."
    )
