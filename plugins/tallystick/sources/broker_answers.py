"""An error code of Kafka means for us: ask again, no such topic, or refused.

Codes are the protocol's own (https://kafka.apache.org/protocol#protocol_error_codes). Decides how
long a question is repeated; sends nothing itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential

from tallystick.errors import (
    BrokerUnavailable,
    RightMissing,
    SourceError,
    SourceRefused,
    TimesUnknown,
    TopicUnknown,
)

T = TypeVar("T")
SecondsLeft = Callable[[], float]

NO_ERROR: Final = 0
OFFSET_OUT_OF_RANGE: Final = 1
OFFSET_NOT_AVAILABLE: Final = 78  # a new leader has not caught up with its high watermark
UNKNOWN_TOPIC: Final = frozenset({3, 100})  # by name, by id
NO_TIMES: Final = 43  # UNSUPPORTED_FOR_MESSAGE_FORMAT: asked for an offset by its time
NO_TOPIC_RIGHT: Final = 29
NOT_ALLOWED: Final = frozenset({NO_TOPIC_RIGHT, 31})  # to see the topic, to see the cluster
# A leader moves, a broker starts, metadata is on its way, or a quota says wait.
PASSING: Final = frozenset(
    {
        5,  # LEADER_NOT_AVAILABLE
        6,  # NOT_LEADER_OR_FOLLOWER
        7,  # REQUEST_TIMED_OUT
        8,  # BROKER_NOT_AVAILABLE
        9,  # REPLICA_NOT_AVAILABLE
        13,  # NETWORK_EXCEPTION
        41,  # NOT_CONTROLLER
        56,  # KAFKA_STORAGE_ERROR
        74,  # FENCED_LEADER_EPOCH
        75,  # UNKNOWN_LEADER_EPOCH
        OFFSET_NOT_AVAILABLE,
        89,  # THROTTLING_QUOTA_EXCEEDED
        103,  # INCONSISTENT_TOPIC_ID: the topic was re-created a moment ago
    }
)

PATIENCE_SECONDS: Final = 15.0
# Brokers learn of a new topic within milliseconds; a stale one may deny it for a moment.
UNKNOWN_TOPIC_SECONDS: Final = 1.5


class AskAgain(Exception):
    """The answer is no answer yet; carries the error to raise when patience ends.

    `is_cut` where no answer came and next to no time was left for one.
    """

    def __init__(self, becomes: SourceError, *, is_cut: bool = False) -> None:
        super().__init__(becomes)
        self.becomes = becomes
        self.is_cut = is_cut


def raise_for_code(
    code: int, text: str, *, topic: str, servers: str, asked: str, right: str = "Read"
) -> None:
    """Return on success; AskAgain for what may pass, SourceRefused for everything else.

    `right` is what the question takes on the topic. Describe comes with Read.
    """
    if code == NO_ERROR:
        return
    if code in UNKNOWN_TOPIC:
        raise AskAgain(TopicUnknown(topic, servers))
    if code in PASSING:
        raise AskAgain(BrokerUnavailable(servers, f"{asked}: {text}"))
    if code == NO_TIMES:
        raise TimesUnknown(asked, text)
    if code == NO_TOPIC_RIGHT:
        raise RightMissing(f"{asked} at {servers}", f"{right} on topic {topic!r}")
    raise SourceRefused(f"{asked} at {servers}", text)


def patiently(question: Callable[[SecondsLeft], T], *, seconds: float = PATIENCE_SECONDS) -> T:
    """The question's answer; the question is repeated while it raises AskAgain.

    It is handed a function that gives the seconds left. When patience ends, the error that the last
    AskAgain carries is raised; one that our own time cut short hides none that came before it, but
    for a denial of the topic, which is believed only where it is repeated.
    """
    deadline = time.monotonic() + seconds
    heard: AskAgain | None = None

    def ask() -> T:
        nonlocal heard
        try:
            return question(lambda: max(0.5, deadline - time.monotonic()))
        except AskAgain as failure:
            is_believed = heard is not None and not isinstance(heard.becomes, TopicUnknown)
            if not (failure.is_cut and is_believed):
                heard = failure
            raise

    asking = Retrying(
        retry=retry_if_exception_type(AskAgain),
        wait=wait_exponential(multiplier=0.05, max=1.0),
        stop=lambda state: _is_enough(state, seconds),
        reraise=True,
    )
    try:
        return asking(ask)
    except AskAgain as last:
        told = heard or last
        raise told.becomes from told.__cause__


def _is_enough(state: RetryCallState, seconds: float) -> bool:
    spent = state.seconds_since_start or 0.0
    failure = state.outcome.exception() if state.outcome else None
    is_unknown_topic = isinstance(failure, AskAgain) and isinstance(failure.becomes, TopicUnknown)
    return spent >= (UNKNOWN_TOPIC_SECONDS if is_unknown_topic else seconds)
