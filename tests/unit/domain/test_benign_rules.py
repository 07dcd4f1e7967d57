"""What is normal is told with its count and its reason, and fails nothing."""

from __future__ import annotations

from tallystick.domain.benign_rules import HoleCount, benign_holes, hole_counts, nothing_there
from tallystick.domain.findings import FAILING_VERDICTS
from tallystick.domain.manifest import AccountedRange
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.states import HoleClass
from tests.support.builders import (
    FEED,
    TOPIC,
    a_manifest,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
    planned,
)

FIRST = a_manifest(
    AccountedRange(
        planned(0, 10),
        5,
        {
            HoleClass.ABORTED: OffsetRuns.of([(2, 4), (6, 7)]),
            HoleClass.CONTROL: OffsetRuns.of([(4, 5), (9, 10)]),
        },
    ),
    AccountedRange(planned(0, 4, partition=1), 4, {HoleClass.COMPACTED: OffsetRuns()}),
)
SECOND = a_manifest(
    AccountedRange(planned(10, 12), 1, {HoleClass.CONTROL: OffsetRuns.of([(11, 12)])})
)


def test_holes_are_counted_by_log_and_class() -> None:
    assert hole_counts([SECOND, FIRST]) == (
        HoleCount(1, 0, HoleClass.CONTROL, 3, 4, 12),
        HoleCount(1, 0, HoleClass.ABORTED, 3, 2, 7),
    )
    assert hole_counts([]) == ()


def test_holes_are_told_with_their_reason() -> None:
    control, aborted = benign_holes(FEED, TOPIC, hole_counts([FIRST, SECOND]))
    (compacted,) = benign_holes(FEED, TOPIC, [HoleCount(2, 3, HoleClass.COMPACTED, 7, 0, 9)])

    assert (control.code.value, control.evidence) == ("Z1", {"count": 3})
    assert control.cause.startswith("3 offset(s) in here hold no row: each transaction ends")
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
