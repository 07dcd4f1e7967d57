"""Errors of Kafka: it does not answer, refuses, or holds another log than before."""

from __future__ import annotations

from dataclasses import field

from tallystick.errors.ingestion import IngestionError


class SourceError(IngestionError):
    """Kafka did not give what was asked."""


class BrokerUnavailable(SourceError):
    """No broker answered in time, or a partition has no leader."""

    next_step = (
        "Check the brokers, then run again. What is committed stays; the next run lands the rest."
    )
    retry = True

    said = "Kafka at {servers} did not answer: {reason}."
    servers: str
    reason: str


class PartitionsLeaderless(BrokerUnavailable):
    """Some partitions of a topic have no leader that answers, while others have one."""


class TopicUnknown(SourceError):
    """The topic does not exist on this cluster."""

    next_step = "Create the topic, or correct source.topic in the feed file, then run again."
    blames_batch = False
    cluster_id: str | None = field(default=None, init=False)
    """Of the cluster that has answered, where it said so."""

    said = "topic {topic!r} does not exist on the cluster at {servers}."
    topic: str
    servers: str


class TopicGone(TopicUnknown):
    """A topic that the feed has landed does not exist any more."""

    next_step = (
        "Ask who deleted it. Don't create it by hand: a topic of that name is another log. What was"
        " seen of it and is not landed is named by: tallystick reconcile FEED"
    )

    said = "topic {topic!r}, which was landed before, is gone from the cluster at {servers}."


class SourceRefused(SourceError):
    """The broker answered, and said no: authorisation, authentication, or a wrong setting."""

    next_step = "Check the connection's user and its rights, then run again."

    said = "Kafka refused {asked}: {reason}."
    asked: str
    reason: str


class RightMissing(SourceRefused):
    """The broker knows the user, who lacks a right that reading the topic takes."""

    next_step = "Give it: docs/install.md, Kafka with passwords and keys, has the command."

    said = "Kafka refused {asked}: its user has no right {reason} (authorization failed)."


class LogUnreadable(SourceRefused):
    """The broker sent records that nobody can read: they are damaged, or of no known version."""

    next_step = (
        "Nothing is committed without them. Look at this place on the broker (kafka-dump-log.sh),"
        " then run again."
    )

    said = "Kafka's log can't be read at {asked}: {reason}."


class TimesUnknown(SourceRefused):
    """The topic's messages have no timestamps, so nobody can find an offset by an instant."""

    next_step = (
        "In the feed file set plan.until: now, and no instant as source.start; or let the brokers"
        " write a newer message format to this topic. Then run again."
    )

    said = "Kafka knows no times for {asked}: its messages are of version 0 ({reason})."


class AnotherCluster(SourceError):
    """The connection leads to another Kafka cluster than the one that the feed has landed from."""

    next_step = (
        "Correct the connection. If the topic has moved for good, give it a new feed: offsets of"
        " two clusters must not mix."
    )

    said = "feed {feed} lands from cluster {known}, but cluster {found} answers."
    feed: str
    known: str
    found: str


class SourceChanged(SourceError):
    """The log is not the one that was planned: re-created, or expired in the meantime."""

    next_step = "Nothing was committed. The next plan records what is lost and lands the rest."
    blames_batch = False

    said = "batch {batch}: {reason}."
    batch: str
    reason: str
