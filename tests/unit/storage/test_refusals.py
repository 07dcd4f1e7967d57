"""How a request that failed on its way is told; what servers answer is in test_name_nodes.py."""

from __future__ import annotations

import pytest
import requests
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool
from urllib3.exceptions import MaxRetryError, NameResolutionError, NewConnectionError, ProtocolError

from tallystick.errors import FileMissing, ManifestMismatch, StorageRefused, StorageUnavailable
from tallystick.storage.refusals import Refusal, was_sent, why_no_answer

URL = "http://ada:s3cret@dn-7:9864/webhdfs/v1/a?op=OPEN&delegation=s3cret"
REQUEST = requests.Request("GET", URL).prepare()
CONNECTION = HTTPConnection("dn-7", 9864)


def connection_error(reason: Exception) -> requests.ConnectionError:
    pool = HTTPConnectionPool("dn-7", 9864)
    return requests.ConnectionError(MaxRetryError(pool, URL, reason), request=REQUEST)


@pytest.mark.parametrize(
    ("error", "is_sent", "words"),
    [
        (
            connection_error(NameResolutionError("dn-7", CONNECTION, OSError())),  # type: ignore[arg-type]
            False,
            "the host name of dn-7:9864 is unknown here",
        ),
        (
            connection_error(NewConnectionError(CONNECTION, "refused")),
            False,
            "dn-7:9864 takes no connections",
        ),
        (
            requests.ConnectTimeout("...", request=REQUEST),
            False,
            "dn-7:9864 took no connection in time",
        ),
        (
            requests.exceptions.SSLError("...", request=REQUEST),
            True,
            "there is no TLS connection to dn-7:9864",
        ),
        (requests.ReadTimeout("...", request=REQUEST), True, "dn-7:9864 did not answer in time"),
        (
            requests.ConnectionError(ProtocolError("reset"), request=REQUEST),
            True,
            "the connection to dn-7:9864 broke",
        ),
        (
            requests.exceptions.ChunkedEncodingError("...", request=REQUEST),
            True,
            "the connection to dn-7:9864 broke",
        ),
        (requests.ConnectionError(), True, "the connection to the server broke"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_went_wrong_on_the_way(
    error: requests.RequestException, is_sent: bool, words: str
) -> None:
    assert (was_sent(error), why_no_answer(error)) == (is_sent, words)


@pytest.mark.parametrize(
    ("exception", "message", "error", "words"),
    [
        (
            "SafeModeException",
            "Cannot create directory /a. Name node is in safe mode.\nNamenodeHostName:nn-1",
            StorageUnavailable,
            "the NameNode is in safe mode: Cannot create directory /a. Name node is in safe mode.",
        ),
        (
            "FileNotFoundException",
            "Path is not a file: /a\n\tat org.apache.hadoop",
            StorageRefused,
            "it is a directory, not a file",
        ),
        ("FileNotFoundException", "File /a not found.", FileMissing, "/a does not exist."),
        (
            "IOException",
            "Fail to get checksum, since file /a is under construction.",
            ManifestMismatch,
            "still being written",
        ),
        (
            "IOException",
            "Rename destination /a/b is a directory or file under source /a",
            StorageRefused,
            "under source",
        ),
        (
            "IOException",
            "File /a could only be written to 0 of the 1 minReplication nodes.",
            StorageUnavailable,
            "no DataNode takes a block, so each one is full or down: File /a could only be written"
            " to 0 of the 1 minReplication nodes.",
        ),
        ("LeaseExpiredException", "", StorageUnavailable, "LeaseExpiredException"),
        ("InvalidPathException", "Invalid file name: /a", StorageRefused, "Invalid file name: /a"),
        ("NewerException", "what?", StorageUnavailable, "NewerException: what?"),
    ],
)
def test_what_hdfs_says_becomes_one_error(
    exception: str, message: str, error: type[Exception], words: str
) -> None:
    found = Refusal(403, exception, message).error("/a")
    assert type(found) is error
    assert words in str(found)
    assert "nn-1" not in str(found)
    assert "org.apache" not in str(found)
