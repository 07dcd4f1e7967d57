"""A batch holds at most one range per partition, and its ids have one form."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone

import pytest

from tallystick.domain.identities import attempt_id, batch_id
from tests.support.builders import NOON, a_batch, planned


def test_two_ranges_of_one_partition_are_refused() -> None:
    # Invariant 1 of `BatchPlan`.
    with pytest.raises(ValueError, match="two ranges of one partition"):
        a_batch(planned(0, 5), planned(7, 9))


@pytest.mark.parametrize(
    "label",
    [NOON.replace(tzinfo=None), NOON.astimezone(timezone(timedelta(hours=1)))],
    ids=["naive", "elsewhere"],
)
def test_a_label_that_is_not_in_utc_is_refused(label: datetime) -> None:
    with pytest.raises(ValueError, match="is not in UTC"):
        a_batch(planned(0, 5), label=label)


def test_the_span_is_that_of_all_ranges() -> None:
    assert a_batch(planned(0, 5), planned(7, 9, partition=1)).span == 7


@pytest.mark.parametrize("make", [batch_id, attempt_id])
@pytest.mark.parametrize("text", ["0123456789abcdef", "0" * 32, "f" * 20])
def test_an_id_is_lower_case_hexadecimal(make: Callable[[str], str], text: str) -> None:
    assert make(text) == text


@pytest.mark.parametrize("make", [batch_id, attempt_id])
@pytest.mark.parametrize(
    "text", ["", "0" * 15, "0" * 33, "0123456789ABCDEF", "../0123456789ab", "0" * 16 + "\n"]
)
def test_anything_else_is_no_id(make: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match="16 to 32 hexadecimal characters"):
        make(text)
