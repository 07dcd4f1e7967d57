"""What an error says of a Spark Connect server; the texts are those of gRPC and of Spark."""

from __future__ import annotations

import grpc
import pytest
from pyspark.errors.exceptions.base import PySparkAssertionError
from pyspark.errors.exceptions.connect import (
    AnalysisException,
    SparkConnectGrpcException,
    SparkException,
)

from tallystick.errors import ApplicationOverdue, SparkRefused, SparkUnavailable
from tallystick.spark.connect_errors import is_lost, server_error
from tallystick.spark.session_settings import SessionChanged

SERVER = "sc://h:15002"
TLS = "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4:15002: "
HANDSHAKE = (
    TLS + "Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1:SSL routines:"
)


class WireError(grpc.RpcError, grpc.Call):  # type: ignore[misc]
    """As gRPC raises it."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class RetriesExceeded(Exception):
    """As PySpark 4.0 raises it after it has tried in vain; 4.1 raises the last try's own error."""

    def getCondition(self) -> str:
        return "RETRIES_EXCEEDED"


def told(code: str, details: str) -> Exception:
    """As PySpark raises it."""
    error = SparkConnectGrpcException(f"<_InactiveRpcError of {details}>")
    error.__cause__ = WireError(grpc.StatusCode[code], details)
    return error


REFUSED = [
    ("UNAUTHENTICATED", "Invalid authentication token"),
    ("PERMISSION_DENIED", "not yours"),
    ("UNIMPLEMENTED", "Method not found: spark.connect.SparkConnectService/Config"),
    ("UNAVAILABLE", HANDSHAKE + "OPENSSL_internal:CERTIFICATE_VERIFY_FAILED: self signed"),
    ("UNAVAILABLE", HANDSHAKE + "OPENSSL_internal:WRONG_VERSION_NUMBER: OK"),
    ("UNAVAILABLE", TLS + "Custom verification check failed: Hostname Verification Check failed."),
]
GONE = [
    ("UNAVAILABLE", TLS + "Failed to connect to remote host: Connection refused"),
    ("UNAVAILABLE", HANDSHAKE + "Socket closed"),
    ("UNAVAILABLE", "errors resolving h:15002: Domain name not found"),
    ("RESOURCE_EXHAUSTED", "too many streams"),
    ("UNKNOWN", "Application error processing RPC"),
    ("CANCELLED", "Channel closed!"),
]


@pytest.mark.parametrize(("code", "details"), REFUSED)
def test_a_connection_that_does_not_fit_the_server_is_not_tried_again(
    code: str, details: str
) -> None:
    error = server_error(SERVER, told(code, details))

    assert isinstance(error, SparkRefused)
    assert error.args == (SERVER, f"{code}: {details}")
    assert not error.retry


@pytest.mark.parametrize(("code", "details"), GONE)
def test_a_server_that_is_not_there_is_tried_again_and_its_reason_is_told(
    code: str, details: str
) -> None:
    error = server_error(SERVER, told(code, details))

    assert isinstance(error, SparkUnavailable)
    assert details in error.args[1]
    assert error.retry


def test_a_server_that_was_tried_in_vain_by_an_older_client_is_not_there() -> None:
    error = RetriesExceeded()
    error.__cause__ = WireError(grpc.StatusCode.UNAVAILABLE, "Connection refused")
    assert isinstance(server_error(SERVER, error), SparkUnavailable)


LOST = [
    "INVALID_HANDLE.SESSION_CLOSED",
    "INVALID_HANDLE.SESSION_CHANGED",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "RESPONSE_ALREADY_RECEIVED",
]


@pytest.mark.parametrize("condition", LOST)
def test_a_session_that_is_lost_is_tried_again(condition: str) -> None:
    error = AnalysisException("gone", errorClass=condition, messageParameters={})
    assert isinstance(server_error(SERVER, error), SparkUnavailable)


def test_another_server_at_the_same_address_has_lost_the_session() -> None:
    error = PySparkAssertionError("Received incorrect server side session identifier for request")
    assert isinstance(server_error(SERVER, error), SparkUnavailable)


def test_a_session_that_somebody_else_has_changed_is_not_ours_any_more() -> None:
    error = server_error(SERVER, SessionChanged("other code has set spark.sql.x meanwhile"))
    assert isinstance(error, SparkUnavailable)


@pytest.mark.parametrize(
    "words",
    [
        "Cannot call methods on a stopped SparkContext.\nThis stopped SparkContext was created at:",
        "Job 3 cancelled because SparkContext was shut down",
    ],
)
def test_a_server_whose_context_has_ended_is_lost_and_no_batch_is_to_blame(words: str) -> None:
    error = SparkException(words)

    assert isinstance(server_error(SERVER, error), SparkUnavailable)


def test_work_that_has_failed_is_not_the_server_s_fault() -> None:
    error = AnalysisException("no", errorClass="PATH_NOT_FOUND", messageParameters={})
    assert server_error(SERVER, error) is None
    assert not is_lost(error)


def test_a_read_that_fails_after_an_overdue_landing_is_not_the_server_s_fault() -> None:
    overdue = ApplicationOverdue("batch b", "connect:1", "0:01:00")
    overdue.__cause__ = told("CANCELLED", "Channel closed!")
    try:
        raise overdue
    except ApplicationOverdue:
        with pytest.raises(SparkException) as read:
            raise SparkException("no such record", errorClass="FAILED_READ_FILE") from None

    assert not is_lost(read.value)
    assert server_error(SERVER, read.value) is None


def test_a_condition_that_only_resembles_a_lost_handle_is_the_work_s_own() -> None:
    error = AnalysisException("no", errorClass="INVALID_HANDLER", messageParameters={})
    assert not is_lost(error)
