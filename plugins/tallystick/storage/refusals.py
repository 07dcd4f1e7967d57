"""One table translates HDFS's exceptions to our errors.

Only the first line of HDFS's own message is kept (the rest is a stack trace or names hosts), and
nothing of a request but its host: a URL may carry a delegation token.
"""

from __future__ import annotations

import ssl
from typing import Final
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import NameResolutionError, NewConnectionError, SSLError

from tallystick.errors import (
    FileMissing,
    ManifestMismatch,
    StorageError,
    StorageLoginFailed,
    StorageRefused,
    StorageUnavailable,
)

# "Ask again": the NameNode did nothing, and says so.
_COME_BACK: Final = frozenset(
    {"RetriableException", "StandbyException", "ObserverRetryOnActiveException"}
)

_UNAVAILABLE: Final = frozenset(
    {
        "SafeModeException",
        *_COME_BACK,
        "ConnectException",
        "ConnectTimeoutException",
        "SocketTimeoutException",
        "NoRouteToHostException",
        "UnknownHostException",
        "BlockMissingException",
        "ChecksumException",
        "NotReplicatedYetException",
        "AlreadyBeingCreatedException",
        "RecoveryInProgressException",
        "LeaseExpiredException",
    }
)
_REFUSED: Final = frozenset(
    {
        "AccessControlException",
        "AclException",
        "AuthorizationException",
        "AuthenticationException",
        "SecurityException",
        "InvalidToken",
        "DSQuotaExceededException",
        "NSQuotaExceededException",
        "QuotaExceededException",
        "QuotaByStorageTypeExceededException",
        "InvalidPathException",
        "ParentNotDirectoryException",
        "FileAlreadyExistsException",
        "PathIsNotEmptyDirectoryException",
        "PathComponentTooLongException",
        "MaxDirectoryItemsExceededException",
        "SnapshotException",
        "UnsupportedOperationException",
        "IllegalArgumentException",
    }
)
_PREFACE: Final = {
    "SafeModeException": "the NameNode is in safe mode: ",
    "DSQuotaExceededException": "the space quota is used up: ",
    "NSQuotaExceededException": "the name quota is used up: ",
    "QuotaByStorageTypeExceededException": "the space quota of a storage type is used up: ",
}
_NO_ROOM: Final = "could only be written to 0 of"
# Plain IOExceptions that no retry mends.
_REFUSED_WORDS: Final = (
    "is a directory or file under source",
    "destination cannot be the root",
    "can't be moved into an encryption zone",
    "can't be moved from an encryption zone",
)


class Refusal(Exception):
    """An answer is no success, and says this; it never leaves this package."""

    def __init__(self, status: int, exception: str | None, message: str) -> None:
        """`exception`: HDFS's name for it; None where the answer isn't WebHDFS's."""
        super().__init__(status, exception, message)
        self.status, self.exception, self.message = status, exception, message
        self.wants_kerberos = False

    @classmethod
    def of(cls, response: requests.Response) -> Refusal:
        """The refusal in a response."""
        try:
            remote = response.json()["RemoteException"]
            found = cls(response.status_code, str(remote["exception"]), str(remote["message"]))
        except (ValueError, KeyError, TypeError):
            found = cls(response.status_code, None, f"HTTP status {response.status_code}")
        asked = response.headers.get("WWW-Authenticate", "")
        found.wants_kerberos = asked.lower().startswith("negotiate")
        return found

    @property
    def words(self) -> str:
        """HDFS's own words, one line, without a full stop."""
        lines = self.message.strip().splitlines() or [self.exception or "no reason given"]
        return lines[0].strip().rstrip(".")

    @property
    def is_come_back(self) -> bool:
        """True if the same request may be made again, whatever it is."""
        return self.exception in _COME_BACK

    @property
    def is_login(self) -> bool:
        """True if nothing was looked at but who asks."""
        return self.status in (401, 407)

    @property
    def may_have_happened(self) -> bool:
        """True if nobody has said that nothing was done: a gateway may have lost the answer."""
        return self.exception is None and (self.status >= 500 or self.status == 408)

    def error(self, path: str) -> StorageError:
        """The refusal as one of our errors."""
        if self.is_login:
            wanted = ", and asks for Kerberos" if self.wants_kerberos else ""
            reason = f"HDFS does not accept this authentication{wanted}"
            return StorageLoginFailed(path, reason)
        if self.exception is None:
            return self._of_a_stranger(path)
        reason = _PREFACE.get(self.exception, "") + self.words
        if self.exception == "FileNotFoundException":
            if self.words.startswith("Path is not a file"):
                return StorageRefused(path, "it is a directory, not a file")
            return FileMissing(path)
        if "is under construction" in self.words:
            return ManifestMismatch(path, "a closed file", "one that is still being written")
        if self.exception in _REFUSED or any(each in self.words for each in _REFUSED_WORDS):
            return StorageRefused(path, reason)
        if self.exception in _UNAVAILABLE:
            return StorageUnavailable(path, reason)
        if _NO_ROOM in self.words:
            reason = f"no DataNode takes a block, so each one is full or down: {reason}"
            return StorageUnavailable(path, reason)
        # Unknown, or a plain IOException: may pass.
        return StorageUnavailable(path, f"{self.exception}: {reason}")

    def _of_a_stranger(self, path: str) -> StorageError:
        """A gateway, or a wrong URL."""
        if self.status >= 500 or self.status in (408, 429):
            return StorageUnavailable(path, f"the server answered {self.words}")
        reason = f"the server answered {self.words}: is this WebHDFS?"
        return StorageRefused(path, reason)


class NoTicket(Exception):
    """Kerberos gave us nothing to show to the server; it never leaves this package."""

    def __init__(self, reason: str, *, may_pass: bool) -> None:
        super().__init__(reason)
        self.reason, self.may_pass = reason, may_pass


class LeadsToClear(Exception):
    """An answer over https leads to a server without it; it never leaves this package."""

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.reason = (
            f"the connection says https, and the answer leads to {server}, where everybody may read"
            " and change what travels; give DataNodes https (dfs.http.policy), and a gateway"
            " its https address"
        )


def was_sent(error: requests.RequestException) -> bool:
    """False if the request surely never reached a server, so it can't have done anything."""
    return not isinstance(error, requests.ConnectTimeout) and _connecting(error) is None


def why_no_answer(error: requests.RequestException) -> str:
    """Says what went wrong on the way, with the host and nothing else of the URL."""
    host = _host_of(error)
    if isinstance(error, requests.exceptions.SSLError):
        return f"there is no TLS connection to {host}"
    if isinstance(error, requests.ConnectTimeout):
        return f"{host} took no connection in time"
    if isinstance(error, requests.Timeout):
        return f"{host} did not answer in time"
    match _connecting(error):
        case None:
            return f"the connection to {host} broke"
        case NameResolutionError():
            # Usual where a NameNode names DataNodes as only the cluster knows them.
            return f"the host name of {host} is unknown here"
        case _:
            return f"{host} takes no connections"


def why_no_trust(error: requests.RequestException) -> str | None:
    """Says why TLS did not accept the server's certificate; None if it was not that."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    cause = reason.args[0] if isinstance(reason, SSLError) and reason.args else None
    if not isinstance(cause, ssl.SSLCertVerificationError):
        return None
    return f"the certificate of {_host_of(error)} is not trusted ({cause.verify_message})"


def _host_of(error: requests.RequestException) -> str:
    url = error.request.url if error.request is not None else None
    return urlsplit(url or "").netloc.rpartition("@")[2] or "the server"


def _connecting(error: requests.RequestException) -> NewConnectionError | None:
    """The failure to connect inside, if that is what it was."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return reason if isinstance(reason, NewConnectionError) else None
