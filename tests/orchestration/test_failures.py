"""Our errors in Airflow's terms: tried again, failed for good, or no failure at all."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from tallystick import errors
from tallystick.errors import IngestionError

LEFT_TO_OTHERS = [errors.AttemptFenced("b1", 3, 4), errors.BatchBusy("b1", "dag/run", 41.0)]
TRIED_AGAIN = [
    errors.BrokerUnavailable("broker:9092", "timed out"),
    errors.StorageUnavailable("/data", "safe mode"),
    errors.RenameOutcomeUnknown("/a", "connection lost", "/b"),
    errors.ApplicationFailed("b1", "local-1", "out of memory"),
    errors.LedgerUnavailable("connection refused"),
    errors.ClaimConflict("orders", "orders-0 [0, 5)"),
    errors.CommitOutcomeUnknown("b1", "a1", "connection lost"),
]
FAILED_FOR_GOOD = [
    errors.ConnectionMissing("spark_default", None, "a connection"),
    errors.WindowIncomplete("window_end", None, "an instant"),
    errors.FeedFileInvalid(["orders.yaml:3: plan.untill: unknown key"]),
    errors.TopicUnknown("orders", "broker:9092"),
    errors.SourceRefused("topic orders", "not authorised"),
    errors.SourceChanged("b1", "topic orders was re-created"),
    errors.StorageRefused("/data", "quota exceeded"),
    errors.StorageLoginFailed("/data", "the certificate of nn:9871 is not trusted"),
    errors.TargetOccupied("/staging", "/target"),
    errors.VerificationFailed("b1", ["orders-0 [0, 5): 2 offsets are not landed"]),
    errors.SchemaOutOfDate(1, 2),
    errors.CheckFailed("orders", "PROVEN_LOSS", "1 trouble", "finding 7"),
]


def raised_by(error: Exception) -> BaseException:
    from tallystick.orchestration.failures import in_airflow_terms

    with pytest.raises(Exception) as caught, in_airflow_terms():  # noqa: PT011 - its type is asked
        raise error
    return caught.value


def names(found: list[IngestionError]) -> list[str]:
    return [type(each).__name__ for each in found]


@pytest.mark.parametrize("error", LEFT_TO_OTHERS, ids=names(LEFT_TO_OTHERS))
def test_a_batch_of_another_attempt_is_skipped_with_a_sentence(error: IngestionError) -> None:
    from airflow.sdk.exceptions import AirflowSkipException

    found = raised_by(error)
    assert type(found) is AirflowSkipException
    assert str(found) == str(error)


@pytest.mark.parametrize("error", TRIED_AGAIN, ids=names(TRIED_AGAIN))
def test_what_may_pass_is_left_to_airflows_retries(error: IngestionError) -> None:
    from airflow.sdk.exceptions import AirflowException

    found = raised_by(error)
    assert found is error
    assert not isinstance(found, AirflowException)


@pytest.mark.parametrize("error", FAILED_FOR_GOOD, ids=names(FAILED_FOR_GOOD))
def test_what_no_retry_can_mend_fails_at_once_in_the_same_words(error: IngestionError) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    found = raised_by(error)
    assert type(found) is AirflowFailException
    assert str(found) == str(error)


def test_the_words_are_in_the_log_once_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = errors.TopicUnknown("orders", "broker:9092")
    with caplog.at_level(logging.INFO, logger="tallystick"):
        raised_by(error)
    assert [record.getMessage() for record in caplog.records] == [str(error)]


def test_a_foreign_exception_is_left_as_it_is() -> None:
    error = KeyError("a defect")
    assert raised_by(error) is error


CONTEXT = {"ti": SimpleNamespace(dag_id="ingest_orders", run_id="manual 1")}


def test_a_feed_that_is_not_in_order_is_told_in_two_lines_with_the_page_first(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallystick.orchestration.failures import FailedAsSaid, failed_check

    error = errors.CheckFailed("orders", "PROVEN_LOSS", "2 troubles", "findings 7-12, 19")
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://airflow.example:8080/")
    with caplog.at_level(logging.ERROR, logger="tallystick"):
        found = failed_check(error, CONTEXT)
    assert type(found) is FailedAsSaid
    said, following = [record.getMessage() for record in caplog.records]
    assert (
        said
        == str(found)
        == (
            "Feed orders: PROVEN_LOSS, 2 troubles (findings 7-12, 19):"
            " http://airflow.example:8080/dags/ingest_orders/runs/manual%201/plugin/tallystick-run"
        )
    )
    assert (
        following.index("page")
        < following.index("repair_orders")
        < following.index("tallystick repair orders")
    )


def test_every_task_but_landing_is_final_when_it_has_said_why_it_fails() -> None:
    from airflow.sdk.definitions.retry_policy import RetryAction

    from tallystick.orchestration.failures import NEVER_AGAIN, FailedAsSaid

    (policy,) = NEVER_AGAIN.values()
    decided = [
        policy.evaluate(error, 1, 3).action
        for error in (FailedAsSaid("as said"), SystemExit("killed"), ValueError("a defect"))
    ]
    assert decided == [RetryAction.FAIL, RetryAction.DEFAULT, RetryAction.DEFAULT]
