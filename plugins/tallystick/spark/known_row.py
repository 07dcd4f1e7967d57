"""One row whose sums are known: asked for behind a full read on a server, in the same session.

Other code may have put functions of its own in place of Spark's there, by registering them under
the same names. Sums over files would be wrong then, and a whole file be blamed for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.row_hash import SPARK_SEED, hash_long, row_hash, wrapped
from tallystick.spark.causes import failure_of
from tallystick.spark.connect_errors import is_lost
from tallystick.spark.session_settings import (
    DEFAULTS,
    SessionChanged,
    functions_of,
    session_settings,
)
from tallystick.spark.slice_sums import AGGREGATES, CONTENT, PLACE, SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_PARTITION: Final = 3
_OFFSET: Final = (5 << 32) + 7
_TIMESTAMP_MICROS: Final = 1_795_000_000_000_000
# Null, so that what stands in place of null is asked for, too.
_KEY, _VALUE = None, b"value"
_HEADERS: Final = (("a", b"1"), ("b", None))
_FIELDS: Final = ("partition", "offset", "key", "value", "headers", PLACE)
# What counts offsets, and what says that a file is one run of them.
_CONTENT: Final = (
    *CONTENT,
    "coalesce(spark_partition_id(), -1) AS part",
    "monotonically_increasing_id() AS number",
)
_SUMS: Final = (
    *AGGREGATES,
    "bit_or(1L << cast(offset & 63 AS INT)) AS word",
    "max(part) AS part",
    "max(number) AS number",
)
# As long as all the others together, since Spark compiles no list.
_LISTED: Final = "size(collect_list(offset)) AS listed"


def require_own_functions(spark: SparkSession, *, listed: bool) -> None:
    """Return when the session's functions still are Spark's; raises SessionChanged.

    `listed` asks for the one that lists offsets, too. An error that says that the server is lost is
    raised as it is.
    """
    try:
        # As the work itself was done: the cluster may have `offset` for a reserved word.
        with session_settings(spark, DEFAULTS):
            found = _asked(spark, (*_SUMS, _LISTED) if listed else _SUMS).asDict()
    except Exception as error:
        if is_lost(error):
            raise
        failure = failure_of(error)
    else:
        expected = _expected(listed=listed)
        wrong = [name for name in expected if found.get(name) != expected[name]]
        if not wrong:
            return
        failure = f"another {', '.join(wrong)}"
    # Not while the error is handled: what the wire says of it would be told in place of this.
    raise SessionChanged(f"other code has changed functions of the session: {failure}")


def _asked(spark: SparkSession, aggregates: Sequence[str]) -> Row:
    expr = functions_of(spark).expr
    headers = [{"key": key, "value": value} for key, value in _HEADERS]
    row = (_PARTITION, _OFFSET, _TIMESTAMP_MICROS, 0, _KEY, _VALUE, headers)
    known = spark.createDataFrame([row], SCHEMA).coalesce(1)
    sums = (
        known.selectExpr(*_FIELDS).selectExpr(*_CONTENT).agg(*(expr(each) for each in aggregates))
    )
    [found] = sums.collect()
    return found


def _expected(*, listed: bool) -> dict[str, Any]:
    whole = row_hash(
        partition=_PARTITION,
        offset=_OFFSET,
        timestamp_micros=_TIMESTAMP_MICROS,
        timestamp_type=0,
        key=_KEY,
        value=_VALUE,
        headers=_HEADERS,
    )
    high, low = Fingerprint.of_row(_OFFSET, whole).hash_sums
    return {
        "record_count": 1,
        "placed_count": 1,
        "first_offset": _OFFSET,
        "last_offset": _OFFSET,
        "high_offset_sum": _OFFSET >> 32,
        "low_offset_sum": _OFFSET & 0xFFFF_FFFF,
        "offset_hash_sum": wrapped(hash_long(_OFFSET, SPARK_SEED)),
        "high_hash_sum": high,
        "low_hash_sum": low,
        "word": 1 << (_OFFSET & 63),
        **({"listed": 1} if listed else {}),
        "part": 0,
        "number": 0,
    }
