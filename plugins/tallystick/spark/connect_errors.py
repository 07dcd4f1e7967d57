"""An error of Spark Connect's client says of the server that it refuses us, or is lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeGuard

from tallystick.errors import IngestionError, SparkError, SparkRefused, SparkUnavailable
from tallystick.spark.causes import cause_of, failure_of
from tallystick.spark.session_settings import SessionChanged

if TYPE_CHECKING:
    import grpc

# What the client says when nobody answers, or the server does not know the session any more: it was
# started anew, or somebody ended the session.
_LOST: Final = (
    "RETRIES_EXCEEDED",
    "INVALID_HANDLE.",
    "SESSION_",
    "ACTIVE_SESSION",
    "RESPONSE_ALREADY_RECEIVED",
    "UNAVAILABLE",
)
_STRANGE_SERVER: Final = "incorrect server side session"
# A server whose context has ended still answers: whatever it is asked then fails for that alone.
_NO_CONTEXT: Final = ("stopped SparkContext", "SparkContext was shut down")
# The last one: another service listens there.
_REFUSED: Final = ("UNAUTHENTICATED", "PERMISSION_DENIED", "UNIMPLEMENTED")
# gRPC tells these as a server that is not there, and the client tries again.
_BAD_TLS: Final = (
    "CERTIFICATE_VERIFY_FAILED",
    "Hostname Verification Check failed",
    "WRONG_VERSION_NUMBER",  # it does not speak TLS
)


def server_error(server: str, error: BaseException) -> SparkError | None:
    """Our error where it is the server that can't be used; None where the work itself failed."""
    of_wire = next((each for each in _causes(error) if _is_of_wire(each)), None)
    reason = failure_of(error) if of_wire is None else _words(of_wire)
    if of_wire is not None and _is_refusal(of_wire):
        return SparkRefused(server, reason)
    return SparkUnavailable(server, reason) if is_lost(error) else None


def is_lost(error: BaseException) -> bool:
    """True for an error that says that the server, or its session, is gone, or that came of it.

    A session that somebody else has changed is not ours any more either.
    """
    return any(_says_lost(each) for each in _causes(error))


def has_ended(error: BaseException) -> bool:
    """True for an error that says that the session was ended before."""
    return _condition_of(error) == "INVALID_HANDLE.SESSION_CLOSED"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    # An error of ours is a verdict on earlier work: what had caused it says nothing of this error.
    while error is not None and not isinstance(error, IngestionError):
        yield error
        error = error.__cause__ or error.__context__


def _says_lost(error: BaseException) -> bool:
    if isinstance(error, SessionChanged) or any(each in str(error) for each in _NO_CONTEXT):
        return True
    condition = _condition_of(error)
    if condition:
        return any(each in condition for each in _LOST)
    # Without a condition: what gRPC says itself. Spark's own errors are of classes below this one.
    is_of_wire = type(error).__name__ == "SparkConnectGrpcException"
    return is_of_wire or _STRANGE_SERVER in str(error)


def _condition_of(error: BaseException) -> str | None:
    condition: str | None = getattr(error, "getCondition", lambda: None)()
    return condition


def _is_of_wire(error: BaseException) -> TypeGuard[grpc.Call]:
    import grpc

    return isinstance(error, grpc.RpcError) and isinstance(error, grpc.Call)


def _is_refusal(error: grpc.Call) -> bool:
    said = error.details() or ""
    return error.code().name in _REFUSED or any(each in said for each in _BAD_TLS)


def _words(error: grpc.Call) -> str:
    return f"{error.code().name}: {cause_of(error.details() or '')}"
