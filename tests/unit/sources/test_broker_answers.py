from __future__ import annotations

import pytest
from kafka import errors as kafka_errors

from tallystick.errors import (
    BrokerUnavailable,
    RightMissing,
    SourceError,
    SourceRefused,
    TimesUnknown,
    TopicUnknown,
)
from tallystick.sources.broker_answers import (
    NO_TOPIC_RIGHT,
    PASSING,
    UNKNOWN_TOPIC,
    AskAgain,
    SecondsLeft,
    patiently,
    raise_for_code,
)

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
