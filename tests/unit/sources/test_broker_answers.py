"""What answers of brokers mean, one that moves between two questions and none at all among them."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from kafka import errors as kafka_errors

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.errors import (
    BrokerUnavailable,
    RightMissing,
    SourceError,
    SourceRefused,
    TimesUnknown,
    TopicUnknown,
)
from tallystick.sources import leader_connections
from tallystick.sources.broker_answers import (
    NO_TOPIC_RIGHT,
    PASSING,
    UNKNOWN_TOPIC,
    AskAgain,
    SecondsLeft,
    patiently,
    raise_for_code,
)
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.sources.frontier_group import KafkaFrontierGroup
from tests.support.kafka_batches import COMMIT, a_batch, a_marker
from tests.support.kafka_scripted import ScriptedClient, fetched, metadata, part

REFUSED = (31, 35, 58, 44)


def asked(code: int) -> None:
    raise_for_code(code, "words", topic="orders", servers="one:9092", asked="fetch")


def test_success_raises_nothing() -> None:
    asked(0)


@pytest.mark.parametrize("code", sorted(PASSING))
def test_what_may_pass_is_asked_again(code: int) -> None:
    with pytest.raises(AskAgain) as caught:
        asked(code)
    assert str(caught.value.becomes).startswith(
        "Kafka at one:9092 did not answer: fetch: words. Check the brokers"
    )
    assert isinstance(caught.value.becomes, BrokerUnavailable)


@pytest.mark.parametrize("code", sorted(UNKNOWN_TOPIC))
def test_a_missing_topic_is_asked_again_too(code: int) -> None:
    with pytest.raises(AskAgain) as caught:
        asked(code)
    assert isinstance(caught.value.becomes, TopicUnknown)


@pytest.mark.parametrize("code", REFUSED)
def test_everything_else_is_refused(code: int) -> None:
    with pytest.raises(SourceRefused, match="Kafka refused fetch at one:9092: words"):
        asked(code)


def test_a_missing_right_is_named() -> None:
    with pytest.raises(RightMissing) as caught:
        asked(NO_TOPIC_RIGHT)
    assert caught.value.describe() == (
        "Kafka refused fetch at one:9092: its user has no right Read on topic 'orders'"
        " (authorization failed)."
    )


def test_a_topic_whose_messages_bear_no_times_is_told_so_and_not_of_rights() -> None:
    with pytest.raises(TimesUnknown, match=r"knows no times for fetch.*plan\.until: now") as told:
        asked(43)
    assert "rights" not in str(told.value)


def is_retriable(code: int) -> bool:
    return issubclass(kafka_errors.for_code(code), kafka_errors.RetriableError)


def test_what_passes_is_what_kafka_calls_retriable() -> None:
    # A broker that isn't available is called final in the protocol's table; it does come back.
    assert {code for code in PASSING if not is_retriable(code)} == {8}
    assert not any(is_retriable(code) for code in REFUSED)


class Silent:
    """A question that is answered at the n-th time."""

    def __init__(self, becomes: SourceError, answered_at: int = 1_000_000) -> None:
        self.asked = 0
        self.left: list[float] = []
        self._becomes = becomes
        self._answered_at = answered_at

    def __call__(self, left: SecondsLeft) -> str:
        self.asked += 1
        self.left.append(left())
        if self.asked < self._answered_at:
            raise AskAgain(self._becomes) from KeyError("cause")
        return "answer"


def test_a_question_is_repeated_until_it_is_answered() -> None:
    question = Silent(BrokerUnavailable("one:9092", "starting"), answered_at=3)
    assert patiently(question, seconds=30) == "answer"
    assert question.asked == 3
    assert question.left == sorted(question.left, reverse=True)


def test_patience_ends_with_the_error_and_its_cause() -> None:
    question = Silent(BrokerUnavailable("one:9092", "starting"))
    with pytest.raises(BrokerUnavailable, match="starting") as caught:
        patiently(question, seconds=0.2)
    assert isinstance(caught.value.__cause__, KeyError)
    assert question.asked > 1


@pytest.mark.parametrize(
    ("heard", "is_told"),
    [
        ([BrokerUnavailable("one:9092", "no leader")], "no leader"),
        # A broker that has just started may deny it for a moment.
        ([TopicUnknown("orders", "one:9092")], "no answer in time"),
        ([], "no answer in time"),
    ],
)
def test_a_last_try_that_our_own_time_cut_short_hides_no_answer_before_it(
    heard: list[SourceError], is_told: str
) -> None:
    cut = BrokerUnavailable("one:9092", "no answer in time")
    answers = iter(heard)

    def question(left: SecondsLeft) -> None:
        told = next(answers, None)
        raise AskAgain(told or cut, is_cut=told is None)

    with pytest.raises(BrokerUnavailable, match=is_told):
        patiently(question, seconds=0.2)


def test_a_missing_topic_is_not_waited_for_as_long() -> None:
    question = Silent(TopicUnknown("orders", "one:9092"))
    with pytest.raises(TopicUnknown):
        patiently(question, seconds=600)
    assert question.asked > 1


def test_other_errors_end_it_at_once() -> None:
    def question(left: SecondsLeft) -> None:
        raise SourceRefused("fetch", "no right")

    with pytest.raises(SourceRefused):
        patiently(question, seconds=600)


PLACE = TopicPartition("orders", 0)
LOG = b"".join(
    [
        a_batch(0, 3, producer=7, is_transactional=True),
        a_marker(3, 7, COMMIT),
        a_batch(4, 6, producer=7, is_transactional=True),
        a_marker(6, 7, COMMIT),
    ]
)


@pytest.mark.parametrize(
    ("log_start_offset", "explained"),
    [(0, [(3, 4), (6, 7)]), (3, [(3, 4), (6, 7)]), (4, [(6, 7)]), (7, [])],
)
def test_what_expires_between_the_walk_and_its_end_is_not_explained(
    monkeypatch: pytest.MonkeyPatch, log_start_offset: int, explained: list[tuple[int, int]]
) -> None:
    start = SimpleNamespace(partition_index=0, error_code=0, offset=log_start_offset)
    client = ScriptedClient(
        metadata=[metadata({0: (1, 0)})],
        fetch=[fetched(part(records=LOG, stable=7))],
        offsets=[SimpleNamespace(topics=[SimpleNamespace(partitions=[start])])],
    )
    monkeypatch.setattr(leader_connections, "open_client", lambda config: client)
    view = KafkaBrokerView(
        {"bootstrap.servers": "one:9092"}, now=lambda: datetime(2026, 11, 1, tzinfo=UTC)
    )
    found = view.explain_holes(
        OffsetRange(PLACE, 0, 7), OffsetRuns.of([(3, 4), (6, 7)]), Isolation.READ_COMMITTED
    )
    expected = {HoleClass.CONTROL: OffsetRuns.of(explained)} if explained else {}
    assert found == expected
    assert client.asked("fetch") == client.asked("offsets") == [1]


OAUTH = {
    "bootstrap.servers": "127.0.0.1:1",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.client.id": "vera",
    "sasl.oauthbearer.client.secret": "pa55-word",
    "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
}


def test_without_a_token_the_endpoint_is_named() -> None:
    group = KafkaFrontierGroup(OAUTH, "shown")
    words = "Failed to acquire SASL OAUTHBEARER token: Could not connect to server"
    group._hear(KafkaError(KafkaError._AUTHENTICATION, words))
    group._hear(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    over = KafkaError(KafkaError._TIMED_OUT)
    with pytest.raises(BrokerUnavailable, match="token endpoint https://127") as caught:
        group._translate(over, KafkaException(over))
    assert "pa55-word" not in str(caught.value)
