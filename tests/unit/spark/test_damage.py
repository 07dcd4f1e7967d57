"""Which words prove that a file is damaged, and which only that nobody could fetch it."""

from __future__ import annotations

import pytest

from tallystick.spark.scrubbing import is_damage

READING = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file hdfs://nn/a.parquet."


@pytest.mark.parametrize(
    ("reason", "damaged"),
    [
        ("ParquetDecodingException: could not verify page integrity, CRC checksum verification"
         " failed", True),
        ("RuntimeException: hdfs://nn/a.parquet is not a Parquet file. Expected magic number at"
         " tail, but found [0, 1, 2, 3]", True),
        ("RuntimeException: corrupted file: the footer index is not within the file", True),
        ("IOException: can not read class org.apache.parquet.format.PageHeader", True),
        ("ZstdIOException: Corrupted block detected", True),
        ("EOFException: Reached the end of stream with 9 bytes left to read", True),
        ("BlockMissingException: Could not obtain block: BP-1 file=/a.parquet", False),
        ("ConnectException: Connection refused", False),
        ("EOFException: Premature EOF: no length prefix available", False),
        ("IOException: Could not read footer for file; caused by SocketTimeoutException", False),
        ("AccessControlException: Permission denied: user=etl", False),
        ("FileNotFoundException: File does not exist: /a.parquet", False),
        ("OutOfMemoryError: Java heap space", False),
        ("could not read page; caused by BlockMissingException: Could not obtain block", False),
    ],
)  # fmt: skip
def test_only_bytes_that_did_arrive_prove_damage(reason: str, damaged: bool) -> None:
    assert is_damage(f"{READING}; caused by {reason}") == damaged
