"""SecondReader of a real cluster, by librdkafka: exact offsets of a few slices, and nothing else.

1. Partitions are assigned with their offsets: no group is joined, no position is committed, and an
   offset that the broker does not have is an answer, never a jump to another one.
2. A slice is read as a whole when the client has passed its end: markers, aborted and cleaned
   records show as nothing, so having seen the last record proves nothing. Either a record at or
   behind the end was seen, or the client says that it stands at or behind it.
3. It is asked for little at a time, and fetches nothing ahead: one batch is what a slice costs.
4. The library unpacks whole what it has fetched, so what a slice unpacks to is asked before. Large
   slices are read one by one and batch by batch; one with a batch beyond any bound is not read.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.second_read import NO_TIMESTAMP, SeenRecord, SliceRead
from tallystick.errors import BrokerUnavailable, RightMissing, SourceRefused, TopicUnknown
from tallystick.sources.broker_answers import PATIENCE_SECONDS
from tallystick.sources.client_properties import client_properties, is_refused_token, token_trouble
from tallystick.sources.slice_weights import FETCH_BYTES, Weigh, Weight

_SETTINGS: Final[Mapping[str, object]] = {
    # The library wants a name to be there. Nothing joins this group, and nothing is stored for it.
    "group.id": "tallystick-second-reader",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "enable.partition.eof": True,
    # A wrong checksum would hide all records of its batch, and librdkafka was seen to end the whole
    # process at one. The hash of each record finds what the checksum would, and names it.
    "check.crcs": False,
    "allow.auto.create.topics": False,
    "enable.metrics.push": False,
    "log_level": 0,
    "log.connection.close": False,
    # One batch at least comes with each answer, however large it is.
    "fetch.message.max.bytes": FETCH_BYTES,
    "fetch.max.bytes": 8 * 1024 * 1024,
    "receive.message.max.bytes": 2**31 - 1,
    "queued.min.messages": 1,
    "queued.max.messages.kbytes": 1024,
    # As long does the next slice of a partition wait, at most.
    "fetch.queue.backoff.ms": 1,
    # How long the end of a log is waited for.
    "fetch.wait.max.ms": 20,
    "socket.connection.setup.timeout.ms": 5_000,
    "reconnect.backoff.max.ms": 1_000,
}
_NOT_OURS: Final = frozenset(
    {
        # Asking for a coordinator needs rights on the group. It is not needed.
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.NOT_COORDINATOR,
    }
)
_REFUSALS: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError._SSL,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_UNKNOWN: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
_OUT_OF_RANGE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
_UNREADABLE: Final = frozenset(
    {
        KafkaError._BAD_MSG,
        KafkaError._BAD_COMPRESSION,
        KafkaError._NOT_IMPLEMENTED,
        KafkaError._UNSUPPORTED_FEATURE,
        KafkaError.INVALID_MSG,
        KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
# Of a header name that is not UTF-8 the library returns with an error that it has not raised; this
# way of calling raises it at once, and not at the next call of whatever function.
_HEADERS_OF: Final = methodcaller("headers")
_WHO: Final = "the second reader (librdkafka)"
_POLL_SECONDS: Final = 0.5
# Unpacked: what one slice of many that are read together may take, and a single batch.
_LIGHT_BYTES: Final = 1 << 20
_MOST_BYTES: Final = 64 << 20
# Whatever trickles in: the reader may not hold its caller for long.
_LONGEST_READ_OVER_PATIENCE: Final = 4


@dataclass(slots=True)
class _Reading:
    """One slice while it is read."""

    asked: OffsetRange
    from_offset: int
    records: list[SeenRecord] = field(default_factory=list)
    not_shown: set[int] = field(default_factory=set)
    until_offset: int | None = None
    """None until the end of the slice, or what keeps from it, was seen."""
    reason: str | None = None
    is_light: bool = True
    """It may be read together with others."""

    @classmethod
    def of(cls, asked: OffsetRange) -> _Reading:
        return cls(asked, asked.from_offset)

    @property
    def number(self) -> int:
        return self.asked.partition.partition

    @property
    def reached(self) -> int:
        """One past the last record that was seen."""
        seen = [each.offset for each in self.records] + list(self.not_shown)
        return max(seen) + 1 if seen else self.from_offset

    def end(self, until_offset: int, reason: str | None = None) -> None:
        """Nothing more comes of this slice."""
        self.until_offset = min(until_offset, self.asked.until_offset)
        self.reason = reason

    def weigh(self, weight: Weight) -> None:
        """Decides by its size unpacked if it is read together with others, alone, or not at all."""
        self.is_light = weight.fetch <= _LIGHT_BYTES
        if weight.batch > _MOST_BYTES:
            size = f"{_MOST_BYTES >> 20} MB"
            self.end(self.from_offset, f"a batch there unpacks to more than {size}: not read")

    def answer(self) -> SliceRead:
        until = self.reached if self.until_offset is None else self.until_offset
        return SliceRead(
            self.asked,
            tuple(self.records),
            self.from_offset,
            max(until, self.from_offset),
            self.reason,
            frozenset(self.not_shown),
        )


class LibrdkafkaReader:
    """Fulfils `SecondReader`, for one thread; connects at the first question.

    A consumer lives as long as the reader: opening and closing one costs more than a sample does.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        patience_seconds: float = PATIENCE_SECONDS,
        connection: str | None = None,
        weigh: Weigh = lambda *_: {},
    ) -> None:
        """Properties bear librdkafka's names; raises ConfigurationError for one that can't be used.

        A question is given up after `patience_seconds` without any answer. Errors name the
        connection. `weigh` tells what slices unpack to.
        """
        known = client_properties(properties, connection)
        self._servers = known.servers
        self._properties = known.librdkafka
        self._patience = patience_seconds
        self._weigh = weigh
        self._consumers: dict[tuple[Isolation, bool], Any] = {}
        self._last_trouble = self._token_trouble = ""
        self._refusal: Any = None

    def __repr__(self) -> str:
        return f"LibrdkafkaReader({self._servers!r})"

    def close(self) -> None:
        """Close the connections; a later question opens new ones."""
        while self._consumers:
            _, consumer = self._consumers.popitem()
            consumer.close()

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        """Returns what the broker serves of the slices."""
        if not slices:
            return ()
        self._last_trouble = self._token_trouble = ""
        readings = [_Reading.of(each) for each in slices]
        weights = self._weigh(slices, _MOST_BYTES)
        for each in readings:
            each.weigh(weights.get(each.asked, Weight()))
        left = [each for each in readings if each.until_offset is None]
        light = [each for each in left if each.is_light]
        consumer: Any = None
        try:
            for together in (light, *([each] for each in left if not each.is_light)):
                if together:
                    consumer = self._consumer(isolation, is_light=together[0].is_light)
                    try:
                        self._read_all(consumer, together)
                    finally:
                        consumer.unassign()
                    if any(each.until_offset is None for each in together):
                        break
        except KafkaException as failure:
            asked = f"{slices[0].partition.topic} by librdkafka at {self._servers}"
            raise SourceRefused(asked, _words(failure)) from failure
        if left and all(each.until_offset is None and not each.records for each in left):
            self._require_readable(consumer, slices[0].partition.topic)
            reason = self._last_trouble or f"no answer within {self._patience:.0f} s"
            raise BrokerUnavailable(self._servers, f"the second reader: {reason}")
        for each in readings:
            if each.until_offset is None:
                each.reason = f"no answer within {self._patience:.0f} s"
        return [each.answer() for each in readings]

    def _require_readable(self, consumer: Any, topic: str) -> None:
        """Return unless the brokers say why nothing came: the library keeps that for itself.

        Raises SourceRefused, TopicUnknown.
        """
        try:
            known = consumer.list_topics(topic, timeout=min(5.0, self._patience))
        except KafkaException as failure:
            self._last_trouble = self._last_trouble or _words(failure)
            return
        error = known.topics[topic].error
        if error is not None:
            self._require_allowed(error, topic)

    def _require_allowed(self, error: Any, topic: str) -> None:
        """Return for what may pass; raises SourceRefused, TopicUnknown."""
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise RightMissing(f"{_WHO} at {self._servers}", f"Read on topic {topic!r}")
        if error.code() in _REFUSALS:
            raise SourceRefused(f"{_WHO} at {self._servers}", error.str())
        if error.code() in _UNKNOWN:
            raise TopicUnknown(topic, self._servers)

    def _consumer(self, isolation: Isolation, *, is_light: bool) -> Any:
        if (isolation, is_light) not in self._consumers:
            settings = {
                **self._properties,
                **_SETTINGS,
                "isolation.level": isolation.value,
                "socket.timeout.ms": max(2_000, int(self._patience * 1000)),
                # Without this the library keeps a refused log-in for its own log.
                "error_cb": self._hear,
            }
            if not is_light:
                settings["fetch.message.max.bytes"] = 1  # each answer holds one batch then
            self._consumers[isolation, is_light] = Consumer(settings)
        return self._consumers[isolation, is_light]

    def _hear(self, error: Any) -> None:
        """Keeps what the library says of its connections, while it is polled."""
        words = error.str()
        trouble = token_trouble(words, self._properties)
        if trouble:
            self._last_trouble = self._token_trouble = trouble
            if not is_refused_token(words):
                return
        else:
            # Without a token all brokers are told to be down: that is no news.
            self._last_trouble = self._token_trouble or words
        if error.code() in _REFUSALS:
            self._refusal = error

    def _read_all(self, consumer: Any, readings: Sequence[_Reading]) -> None:
        """Reads one slice of each partition after the other, all partitions at once.

        A partition is given back with the end of each slice: what was fetched beyond is dropped
        then, and nothing more is fetched of it.
        """
        waiting: dict[int, deque[_Reading]] = {}
        for each in readings:
            waiting.setdefault(each.number, deque()).append(each)
        _begin(consumer, [each[0] for each in waiting.values()])
        heard_at = begun_at = time.monotonic()
        while waiting:
            now = time.monotonic()
            is_late = now - begun_at > self._patience * _LONGEST_READ_OVER_PATIENCE
            if is_late or now - heard_at > self._patience:
                return
            message = consumer.poll(min(_POLL_SECONDS, self._patience))
            if self._refusal is not None:
                refusal, self._refusal = self._refusal, None
                self._require_allowed(refusal, readings[0].asked.partition.topic)
            if message is not None and self._is_taken(consumer, message, waiting):
                heard_at = time.monotonic()

    def _is_taken(self, consumer: Any, message: Any, waiting: dict[int, deque[_Reading]]) -> bool:
        """True for an answer about a slice that is read now; with its end the next one begins."""
        number = message.partition()
        reading = waiting[number][0] if number in waiting else None
        before = reading and reading.from_offset
        if message.error() is not None:
            self._take_error(consumer, message, reading)
        elif reading is not None:
            _take(reading, message)
        if reading is None:
            return False
        if reading.until_offset is not None:
            _end(consumer, reading)
            waiting[number].popleft()
            if waiting[number]:
                _begin(consumer, [waiting[number][0]])
            else:
                del waiting[number]
        elif reading.from_offset != before:
            _end(consumer, reading)
            _begin(consumer, [reading])
        return True

    def _take_error(self, consumer: Any, message: Any, reading: _Reading | None) -> None:
        """Ends the reading, or moves its beginning to the log's; what passes is remembered.

        Raises SourceRefused, TopicUnknown.
        """
        error = message.error()
        code, words = error.code(), error.str()
        self._require_allowed(error, message.topic() or "?")
        if code in _NOT_OURS:
            return
        if reading is None:
            self._last_trouble = words
        elif code == KafkaError._PARTITION_EOF:
            at = message.offset()
            is_whole = at >= reading.asked.until_offset
            reading.end(at, None if is_whole else f"the broker shows nothing from {at} on")
        elif code in _OUT_OF_RANGE:
            self._move(consumer, reading)
        elif code in _UNREADABLE:
            reading.end(reading.reached, f"librdkafka can't read what stands there: {words}")
        else:
            reading.end(reading.reached, words)

    def _move(self, consumer: Any, reading: _Reading) -> None:
        """Reads on from where the log begins within the slice; otherwise the slice has ended."""
        low, high = consumer.get_watermark_offsets(
            TopicPartition(reading.asked.partition.topic, reading.number),
            timeout=self._patience,
            cached=False,
        )
        if low >= reading.asked.until_offset:
            reading.from_offset = reading.asked.until_offset
            reading.end(reading.from_offset, f"expired: the log begins at {low}")
        elif low > reading.from_offset:
            reading.from_offset = low
        else:
            reading.end(reading.reached, f"the log ends at {high}")


def _begin(consumer: Any, readings: Sequence[_Reading]) -> None:
    places = [(each.asked.partition.topic, each.number, each.from_offset) for each in readings]
    consumer.incremental_assign([TopicPartition(*place) for place in places])


def _end(consumer: Any, reading: _Reading) -> None:
    consumer.incremental_unassign([TopicPartition(reading.asked.partition.topic, reading.number)])


def _take(reading: _Reading, message: Any) -> None:
    """The record, if it belongs to the slice; one behind the end ends it."""
    offset = message.offset()
    if offset >= reading.asked.until_offset:
        reading.end(offset)
        return
    if offset < reading.from_offset:
        return
    try:
        headers = _HEADERS_OF(message) or ()
    except (UnicodeDecodeError, SystemError):
        # The library's Python side knows header names in UTF-8 only.
        reading.not_shown.add(offset)
    else:
        kind, timestamp_ms = message.timestamp()
        reading.records.append(
            SeenRecord.of(
                partition=reading.number,
                offset=offset,
                timestamp_ms=timestamp_ms if kind else NO_TIMESTAMP,
                timestamp_type=kind - 1,  # librdkafka counts from 1
                key=message.key(),
                value=message.value(),
                headers=headers,
            )
        )
    if offset == reading.asked.until_offset - 1:
        reading.end(offset + 1)


def _words(failure: KafkaException) -> str:
    error = failure.args[0] if failure.args else failure
    return error.str() if isinstance(error, KafkaError) else str(error)
