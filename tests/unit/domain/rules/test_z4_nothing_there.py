"""Z4: a log that holds nothing is told as such, and fails nothing."""

from __future__ import annotations

from tallystick.domain.rules.z4_nothing_there import nothing_there
from tests.support.builders import FEED, a_snapshot, an_account, bounds, by_partition


def test_a_log_without_a_record_is_told_as_such() -> None:
    accounts = by_partition(*(an_account(partition=each) for each in range(3)))
    logs = {0: bounds(0, 0), 1: bounds(7, 7), 2: bounds(6, 7), 3: bounds(0, 0)}
    never, gone = nothing_there(FEED, accounts, a_snapshot(logs))

    assert (never.partition, never.cause) == (0, "nothing was ever written here.")
    assert (gone.partition, gone.cause) == (1, "the log is empty: all below 7 has expired.")
    assert nothing_there(FEED, accounts, a_snapshot(logs, topic_id="another")) == ()
