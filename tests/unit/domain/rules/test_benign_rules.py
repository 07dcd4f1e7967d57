"""What is normal is told with its count and its reason, and fails nothing."""

from __future__ import annotations

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.rules.benign_rules import HoleCount, benign_holes, nothing_there
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tests.support.builders import (
    FEED,
    TOPIC,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)


def test_holes_are_told_with_their_reason() -> None:
    control, aborted = benign_holes(
        FEED,
        TOPIC,
        [
            HoleCount(1, 0, HoleClass.CONTROL, 3, 4, 12),
            HoleCount(1, 0, HoleClass.ABORTED, 3, 2, 7),
        ],
    )
    (compacted,) = benign_holes(FEED, TOPIC, [HoleCount(2, 3, HoleClass.COMPACTED, 7, 0, 9)])

    assert (control.code.value, control.evidence) == ("Z1", {"count": 3})
    assert control.cause.startswith("3 offset(s) hold no row: each transaction ends")
    assert (aborted.code.value, aborted.from_offset, aborted.until_offset) == ("Z2", 2, 7)
    assert (compacted.code.value, compacted.generation, compacted.partition) == ("Z3", 2, 3)
    assert not {each.verdict for each in (control, aborted, compacted)} & FAILING_VERDICTS


def test_a_log_without_a_record_is_told_as_such() -> None:
    accounts = by_partition(*(an_account(partition=each) for each in range(3)))
    logs = {0: bounds(0, 0), 1: bounds(7, 7), 2: bounds(6, 7), 3: bounds(0, 0)}
    never, gone = nothing_there(FEED, accounts, a_snapshot(logs))

    assert (never.partition, never.cause) == (0, "nothing was ever written here.")
    assert (gone.partition, gone.cause) == (1, "the log is empty: all below 7 has expired.")
    assert nothing_there(FEED, accounts, a_snapshot(logs, topic_id="another")) == ()
