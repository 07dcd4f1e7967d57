"""FrontierGroup of a real cluster, by librdkafka: offsets are set, and no group is joined.

1. A group with members, with offsets of another topic, or with offsets that bear another mark than
   this feed's is somebody else's: it is left as it is.
2. Kafka itself refuses offsets for a group that has got members since it was asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from tallystick.errors import BrokerUnavailable, RightMissing, SourceRefused
from tallystick.sources.client_properties import client_properties, token_trouble

_SECONDS: Final = 10.0
"""For each of the three questions."""
# A group that is used for the first time, or whose broker has just restarted, says so for a moment.
_PASSING: Final = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
    }
)
_NO_GROUP: Final = frozenset({KafkaError.GROUP_ID_NOT_FOUND, KafkaError.INVALID_GROUP_ID})


class KafkaFrontierGroup:
    """Fulfils `FrontierGroup`; connects when it is first told something."""

    def __init__(
        self, properties: Mapping[str, str], group: str, *, connection: str | None = None
    ) -> None:
        """Properties bear librdkafka's names; raises ConfigurationError for a wrong one.

        Errors name the connection.
        """
        known = client_properties(properties, connection)
        self._group, self._servers = group, known.servers
        self._properties, self._token_trouble = known.librdkafka, ""
        self._settings = {
            **known.librdkafka,
            "log_level": 0,
            "enable.metrics.push": False,
            # What a question that is over says is only that it was over.
            "error_cb": self._hear,
        }

    def show(self, feed: str, topic: str, frontiers: Mapping[int, int]) -> None:
        """Commit the frontiers, where the group is this feed's."""
        mark = f"tallystick feed {feed}"
        offsets = [
            TopicPartition(topic, partition, offset, mark)
            for partition, offset in sorted(frontiers.items())
        ]
        # Kept until the end: the answers to a client that is gone never come.
        self._token_trouble = ""
        admin = AdminClient(self._settings)
        try:
            for attempt in _tries():
                with attempt:
                    self._require_own(admin, topic, mark)
                    self._commit(admin, offsets)
        except KafkaException as error:
            admin.poll(0)
            self._translate(error.args[0], error)
        except TimeoutError as error:
            admin.poll(0)
            reason = self._token_trouble or "no answer in time"
            raise BrokerUnavailable(self._servers, reason) from error

    def _hear(self, error: KafkaError) -> None:
        self._token_trouble = token_trouble(error.str(), self._properties) or self._token_trouble

    def _commit(self, admin: AdminClient, offsets: list[TopicPartition]) -> None:
        asked = [ConsumerGroupTopicPartitions(self._group, offsets)]
        changed = admin.alter_consumer_group_offsets(asked, request_timeout=_SECONDS)
        for each in changed[self._group].result(_SECONDS * 2).topic_partitions:
            if each.error:
                raise KafkaException(each.error)

    def _require_own(self, admin: AdminClient, topic: str, mark: str) -> None:
        """Raise SourceRefused where somebody else seems to use the group."""
        described = admin.describe_consumer_groups([self._group], request_timeout=_SECONDS)
        try:
            members = described[self._group].result(_SECONDS * 2).members
        except KafkaException as error:
            if error.args[0].code() not in _NO_GROUP:
                raise
            members = []  # there is no such group yet
        if members:
            self._refuse("it has members: somebody consumes with it")
        asked = [ConsumerGroupTopicPartitions(self._group)]
        listed = admin.list_consumer_group_offsets(asked, request_timeout=_SECONDS)
        for each in listed[self._group].result(_SECONDS * 2).topic_partitions:
            if each.topic != topic or each.metadata != mark:
                self._refuse(
                    f"somebody else has committed an offset of {each.topic}-{each.partition} there"
                )

    def _refuse(self, reason: str) -> None:
        raise SourceRefused(f"group {self._group} at {self._servers}", reason)

    def _translate(self, error: KafkaError, cause: Exception) -> None:
        words = self._token_trouble or error.str().strip(": ") or error.name()
        is_silent = error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
        if is_silent or error.retriable() or error.code() in _PASSING:
            raise BrokerUnavailable(self._servers, words) from cause
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            asked = f"offsets of group {self._group} at {self._servers}"
            raise RightMissing(asked, f"Read on group {self._group!r}") from cause
        raise SourceRefused(f"group {self._group} at {self._servers}", words) from cause


def _tries() -> Retrying:
    return Retrying(
        retry=retry_if_exception(_is_passing),
        stop=stop_after_delay(_SECONDS),
        wait=wait_fixed(0.5),
        reraise=True,
    )


def _is_passing(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in _PASSING
