"""Tells a damaged file from a file that nobody could fetch, by what Parquet's readers say. Pure."""

from __future__ import annotations

import re
from typing import Final

# Words of parquet-mr, its codecs and thrift about bytes that did arrive. What HDFS says about bytes
# that did not (a block without a living copy, a refused connection) is no proof of anything.
_DAMAGE: Final = re.compile(
    r"CRC checksum verification failed"
    r"|is not a Parquet file|[Ee]xpected magic number|corrupted file:"
    r"|ParquetDecodingException|can not read class org\.apache\.parquet\.format"
    r"|Required field '\w+' was not found in serialized data|TProtocolException"
    r"|Reached the end of stream with \d+ bytes left to read"
    r"|ZstdIOException|Decompression error|Corrupted block|FAILED_TO_UNCOMPRESS|MalformedInput"
    r"|Unknown frame descriptor|Restored data doesn't match checksum|Src size is incorrect"
)
_UNREACHED: Final = re.compile(
    r"ConnectException|BlockMissingException|Could not obtain block|SafeModeException"
    r"|StandbyException|SocketTimeoutException|UnknownHostException|RetriableException"
    r"|AccessControlException|FileNotFoundException|PATH_NOT_FOUND|OutOfMemoryError"
)


def is_damage(reason: str) -> bool:
    """True when the reason proves that a file's bytes are no longer a whole Parquet file.

    >>> is_damage("could not verify page integrity, CRC checksum verification failed")
    True
    >>> is_damage("Could not read footer; caused by ConnectException: refused")
    False
    """
    return bool(_DAMAGE.search(reason)) and not _UNREACHED.search(reason)
