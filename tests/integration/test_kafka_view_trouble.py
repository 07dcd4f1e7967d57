"""Brokers that are down, and brokers that say no."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.errors import BrokerUnavailable, SourceError, SourceRefused
from tallystick.sources.broker_answers import PATIENCE_SECONDS
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_guarded import GUEST, READER, GuardedKafka, guarded_kafka
from tests.support.kafka_producers import TransactionalProducer, messages
from tests.support.kafka_topics import create_topic

NOBODY = "127.0.0.1:9"  # the discard port: nobody listens
NOW = datetime(2026, 11, 1, tzinfo=UTC)
PLACE = TopicPartition("orders", 0)
Question = Callable[[KafkaBrokerView], object]
QUESTIONS: dict[str, Question] = {
    "snapshot": lambda view: view.snapshot("orders"),
    "offsets_at": lambda view: view.offsets_at("orders", NOW, [0]),
    "records_at": lambda view: view.records_at("orders", {0: 3}),
    "epoch_ends": lambda view: view.epoch_ends("orders", {0: 0}),
    "explain_holes": lambda view: view.explain_holes(
        OffsetRange(PLACE, 0, 5), OffsetRuns.of([(1, 2)]), Isolation.READ_COMMITTED
    ),
}


def view_of(
    properties: dict[str, str], *, patience_seconds: float = PATIENCE_SECONDS
) -> KafkaBrokerView:
    return KafkaBrokerView(properties, now=lambda: NOW, patience_seconds=patience_seconds)


def test_a_plan_fails_within_twenty_seconds_when_kafka_is_down() -> None:
    started = time.monotonic()
    view = view_of({"bootstrap.servers": NOBODY}, patience_seconds=2)
    with view, pytest.raises(BrokerUnavailable) as caught:
        view.snapshot("orders")
    overtime = time.monotonic() - started - 2
    assert PATIENCE_SECONDS + overtime < 20
    assert f"Kafka at {NOBODY} did not answer" in str(caught.value)
    assert "ECONNREFUSED" in str(caught.value)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_every_question_says_which_servers_were_silent(question: Question) -> None:
    view = view_of({"bootstrap.servers": NOBODY}, patience_seconds=1)
    with view, pytest.raises(BrokerUnavailable, match=f"Kafka at {NOBODY} did not") as caught:
        question(view)
    assert "refused" in str(caught.value).lower()


@pytest.mark.parametrize("kind", ["snapshot", "records_at"])
def test_a_host_without_name_is_no_riddle(kind: str) -> None:
    view = view_of({"bootstrap.servers": "no-such-host.invalid:9092"}, patience_seconds=0.5)
    with view, pytest.raises(BrokerUnavailable, match=r"Kafka at no-such-host\.invalid:9092"):
        QUESTIONS[kind](view)


def test_nothing_is_written_to_standard_error() -> None:
    program = f"""
from datetime import UTC, datetime
from tallystick.errors import SourceError
from tallystick.sources.broker_view import KafkaBrokerView

view = KafkaBrokerView({{"bootstrap.servers": "{NOBODY}"}}, now=None, patience_seconds=1)
now = datetime.now(UTC)
for question in (lambda: view.offsets_at("o", now, [0]), lambda: view.records_at("o", {{0: 1}})):
    try:
        question()
    except SourceError as failure:
        print(failure)
view.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONPATH": "plugins"},
    )
    assert done.stderr == ""
    assert done.stdout.count("did not answer") == 2


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    with guarded_kafka(tmp_path_factory.mktemp("guarded")) as guarded:
        create_topic(guarded.open_servers, "orders")
        guarded.let_in(READER, "orders")
        producer = TransactionalProducer(guarded.open_servers, "orders")
        producer.commit(messages(3)).abort(messages(3))
        yield guarded


@pytest.mark.parametrize("tls", [False, True], ids=["plain text", "TLS"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_has_the_password_is_let_in(guarded: GuardedKafka, mechanism: str, tls: bool) -> None:
    with view_of(guarded.properties(READER, mechanism, tls=tls)) as view:
        found = view.snapshot("orders")
        assert found.partitions[0].last_stable_offset == 8
        assert list(view.records_at("orders", {0: 2})) == [0]
        holes = OffsetRuns.of([(3, 8)])
        explained = view.explain_holes(OffsetRange(PLACE, 0, 8), holes, Isolation.READ_COMMITTED)
        assert explained == {
            HoleClass.CONTROL: OffsetRuns.of([(3, 4), (7, 8)]),
            HoleClass.ABORTED: OffsetRuns.of([(4, 7)]),
        }


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_wrong_password_is_refused_at_once_and_never_shown(
    guarded: GuardedKafka,
    caplog: pytest.LogCaptureFixture,
    mechanism: str,
    question: Question,
) -> None:
    wrong = guarded.properties(READER, mechanism) | {"sasl.password": "wrong-sesame-99"}
    started = time.monotonic()
    with (
        caplog.at_level(logging.DEBUG),
        view_of(wrong) as view,
        pytest.raises(SourceRefused, match=r"(?i)authentication") as caught,
    ):
        question(view)
    assert time.monotonic() - started < 10
    assert "wrong-sesame-99" not in f"{caught.value!r} {caught.value} {caplog.text}"


def test_no_log_shows_the_password(guarded: GuardedKafka, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), view_of(guarded.properties(READER, "PLAIN")) as view:
        for question in QUESTIONS.values():
            question(view)
    assert guarded.password(READER) not in caplog.text


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_user_without_rights_is_refused(guarded: GuardedKafka, question: Question) -> None:
    view = view_of(guarded.properties(GUEST, "PLAIN"))
    with view, pytest.raises(SourceRefused, match=r"(?i)kafka refused .*authoriz"):
        question(view)


def test_plain_text_at_a_guarded_listener_is_an_error(guarded: GuardedKafka) -> None:
    view = view_of({"bootstrap.servers": guarded.sasl_servers}, patience_seconds=1)
    with view, pytest.raises(SourceError, match=guarded.sasl_servers):
        view.snapshot("orders")


def test_an_unknown_certificate_is_an_error(guarded: GuardedKafka) -> None:
    untrusting = guarded.properties(READER, "PLAIN", tls=True)
    del untrusting["ssl.ca.location"]
    with view_of(untrusting) as view:
        for question in QUESTIONS.values():
            with pytest.raises(SourceRefused, match=r"(?i)certificate"):
                question(view)
