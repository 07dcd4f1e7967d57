"""What the schema refuses of a file's slices, and of what is said about them."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors

from tests.support.ledger_story import LedgerStory

SLICES = (
    "INSERT INTO file SELECT batch_id, 'another.parquet', 1, 'none:00', 10, {}::int4multirange,"
    " {}::bigint[], {}::int[], {}::smallint[], {}::bigint[] FROM file"
)
FINGERPRINT = (
    "INSERT INTO file_fingerprint (batch_id, name, partition, hash_version, record_count,"
    " offset_sum, high_hash_sum, low_hash_sum)"
    " SELECT batch_id, name, {}, 1, 10, 45, 1, 2 FROM file"
)


@pytest.fixture
def by_hand(story: LedgerStory) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A ledger with a file of partition 0."""
    story.open({0: (0, 10)})
    story.committed((0, 0, 10))
    with story.raw() as connection:
        yield connection


def slices(*columns: str | None) -> bytes:
    return SLICES.format(*(f"'{each}'" if each else "NULL" for each in columns)).encode()


def test_slices_of_ascending_partitions_are_entered(
    story: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    by_hand.execute(slices("{[0,1),[3,4)}", "{5,0}", "{0,2}", "{4,1}", "{0,0}"))
    assert story.ask("SELECT * FROM file_slice WHERE name = 'another.parquet'") == [
        (story.ask("SELECT batch_id FROM batch")[0][0], "another.parquet", *each)
        for each in ((0, 5, 8, 4), (3, 0, 2 * 32768, 2 * 32768 + 1))
    ]


def test_a_file_without_rows_holds_no_slice(
    story: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    by_hand.execute(slices(None, None, None, None, None))
    assert story.ask("SELECT * FROM file_slice WHERE name = 'another.parquet'") == []


@pytest.mark.parametrize(
    "columns",
    [
        ("{}", "{}", "{}", "{}", "{}"),
        ("{[0,1)}", None, None, None, None),
        (None, "{0}", "{0}", "{1}", "{0}"),
        ("{[-1,0)}", "{0}", "{0}", "{1}", "{0}"),
        ("{[0,1)}", "{-1}", "{0}", "{2}", "{0}"),
        ("{[0,1)}", "{0}", "{0}", "{1}", "{1}"),
        ("{[0,1)}", "{0}", "{0}", "{4}", "{-1}"),
        ("{[0,1)}", "{4}", "{0}", "{0}", "{0}"),
        ("{[0,1),[0,1)}", "{0,5}", "{0,0}", "{1,1}", "{0,0}"),
        ("{[0,2)}", "{0}", "{0}", "{1}", "{0}"),
        ("{[0,1)}", "{0,1}", "{0,0}", "{1,1}", "{0,0}"),
        ("{[0,1)}", "{NULL}", "{0}", "{1}", "{0}"),
        ("{[0,1)}", "{0}", "{-1}", "{32767}", "{0}"),
        ("{[0,1)}", "{0}", "{1}", "{-1}", "{0}"),
        ("{[0,)}", "{0}", "{0}", "{1}", "{0}"),
    ],
    ids=[
        "of nothing",
        "only partitions",
        "of no partitions",
        "no partition",
        "no offset",
        "no rows",
        "more rows than offsets",
        "ends before it begins",
        "a partition twice",
        "too few offsets",
        "too few partitions",
        "no first offset",
        "fewer than no blocks",
        "less than no rest",
        "partitions without an end",
    ],
)
def test_what_is_no_slice_is_refused(
    by_hand: psycopg.Connection[tuple[object, ...]], columns: tuple[str | None, ...]
) -> None:
    with pytest.raises(errors.CheckViolation, match="file_holds_slices"):
        by_hand.execute(slices(*columns))


def test_a_fingerprint_is_of_a_slice_that_the_file_has(
    by_hand: psycopg.Connection[tuple[object, ...]],
) -> None:
    with pytest.raises(psycopg.Error, match="holds nothing of partition 1"):
        by_hand.execute(FINGERPRINT.format(1).encode())
    by_hand.execute(FINGERPRINT.format(0).encode())
