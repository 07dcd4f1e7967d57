"""Is a log still the one that was seen, and from where is a cut one due again? As tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from tallystick.domain.logs.due_again import claims_anchor, due_again_from, epoch_to_ask
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import (
    SAME,
    UNKNOWN,
    LogCheck,
    Sameness,
    check_log,
    needs_epoch_end,
)
from tallystick.domain.logs.snapshot import EpochEnd, PartitionBounds, RecordEvidence
from tests.support.builders import ANCHOR_HASH, an_account

# Landed up to 5, seen to reach 9 in leader epoch 3; now epoch 4 leads a log of [0, 12).
LANDED = replace(
    an_account(frontier=5, anchor_offset=4, last_seen_until=9), read_until=5, seen_epoch=3
)
OTHER_HASH = bytes(15) + b"x"


def now(start: int, end: int, epoch: int | None = 4) -> PartitionBounds:
    return PartitionBounds(start, end, end, epoch)


def record(content: bytes) -> RecordEvidence:
    return RecordEvidence(4, 3, content)


@dataclass(frozen=True)
class Facts:
    account: GenerationAccount = LANDED
    bounds: PartitionBounds = field(default_factory=lambda: now(0, 12))
    end: EpochEnd | None = field(default_factory=lambda: EpochEnd(10, 0))
    record: RecordEvidence | None = field(default_factory=lambda: record(ANCHOR_HASH))


CUT_LANDED = LogCheck(Sameness.CUT, 3, is_overwritten=True)
RECORD_DIFFERS = LogCheck(Sameness.CUT, None, is_overwritten=True)

ROWS = [
    ("whole: the old epoch ends beyond what was seen", Facts(), SAME),
    ("ends where it was seen: equal is all of it", Facts(end=EpochEnd(9, 0)), SAME),
    ("cut by one: seen, and not landed", Facts(end=EpochEnd(8, 0)), LogCheck(Sameness.CUT, 8)),
    ("cut below the landed end: landed rows are others", Facts(end=EpochEnd(3, 0)), CUT_LANDED),
    ("another record: one that says no", Facts(record=record(OTHER_HASH)), RECORD_DIFFERS),
    (
        "another record, and the epochs know where: the place comes from the epochs",
        Facts(end=EpochEnd(3, 0), record=record(OTHER_HASH)),
        CUT_LANDED,
    ),
    ("record gone: the epochs cover it", Facts(record=None), SAME),
    (
        "the same term: a log is cut at a change of leaders only",
        Facts(bounds=now(0, 12, epoch=3), end=None, record=None),
        SAME,
    ),
    (
        "the same term, and shorter: a log that was put back by hand",
        Facts(bounds=now(0, 8, epoch=3), end=EpochEnd(8, 0)),
        LogCheck(Sameness.CUT, 8),
    ),
    (
        "a high watermark that lags: epochs end where the log ends, replicated or not",
        Facts(bounds=now(0, 7), end=EpochEnd(9, 0)),
        SAME,
    ),
    (
        "forgotten with its records: the answer is the start of the oldest epoch that is left",
        Facts(bounds=now(10, 20), end=EpochEnd(10, 10), record=None),
        UNKNOWN,
    ),
    (
        "forgotten, and begins below what was seen: what is there from 7 on is of a later epoch",
        Facts(bounds=now(7, 20), end=EpochEnd(7, 7), record=None),
        LogCheck(Sameness.CUT, 7),
    ),
    (
        "expired after the look: the log start of after the answer counts",
        Facts(bounds=now(0, 20), end=EpochEnd(10, 10), record=None),
        UNKNOWN,
    ),
    (
        "idle, and all of it expired: it ends where it was seen to end",
        Facts(bounds=now(9, 9), end=EpochEnd(9, 9), record=None),
        SAME,
    ),
    ("the leader knows no such epoch: the last landed record is there", Facts(end=None), SAME),
    ("nobody can tell: never the same by default", Facts(end=None, record=None), UNKNOWN),
    (
        "shorter, and only the record is there: what was seen behind it may be cut",
        Facts(bounds=now(0, 8), end=None),
        UNKNOWN,
    ),
    (
        "nothing was ever seen: there is nothing to be held against",
        Facts(account=an_account(), end=None, record=None),
        SAME,
    ),
]


@pytest.mark.parametrize(
    ("facts", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_what_the_witnesses_say(facts: Facts, expected: LogCheck) -> None:
    assert check_log(facts.account, facts.bounds, facts.end, facts.record) == expected


@pytest.mark.parametrize(
    ("bounds", "is_asked"),
    [(now(0, 9, epoch=3), False), (now(0, 8, epoch=3), True), (now(0, 9, epoch=4), True)],
)
def test_the_broker_is_asked_after_a_change_of_leaders_or_of_the_end(
    bounds: PartitionBounds, is_asked: bool
) -> None:
    assert needs_epoch_end(LANDED, bounds) is is_asked


def test_a_log_without_a_witness_is_not_asked_for_one() -> None:
    assert not needs_epoch_end(an_account(frontier=5), now(0, 9))


@pytest.mark.parametrize(
    ("check", "until", "holds"),
    [
        (SAME, 9, True),
        (UNKNOWN, 1, False),
        (LogCheck(Sameness.CUT, 9), 9, True),
        (LogCheck(Sameness.CUT, 8), 9, False),
        (RECORD_DIFFERS, 1, False),
    ],
)
def test_what_lies_below_a_cut_is_as_it_was(check: LogCheck, until: int, holds: bool) -> None:
    assert check.holds_below(until) is holds


NEW = an_account(frontier=3, first_offset=3, last_seen_until=9)
LANDED_TO = an_account(frontier=5, anchor_offset=4, last_seen_until=9)
SEEN = replace(LANDED_TO, seen_epoch=7)
WITHOUT_EPOCHS = replace(LANDED_TO, anchor=replace(LANDED_TO.anchor, leader_epoch=None))  # type: ignore[type-var]
HOLES_ALONE = replace(NEW, read_until=5, seen_epoch=7)


@pytest.mark.parametrize(
    ("account", "end", "is_claimed", "due"),
    [
        pytest.param(NEW, None, False, 3, id="nothing was landed"),
        pytest.param(LANDED_TO, None, False, None, id="nobody can tell"),
        pytest.param(LANDED_TO, EpochEnd(2, 0), False, 2, id="cut below the last landed record"),
        pytest.param(LANDED_TO, EpochEnd(4, 0), False, 4, id="cut at it"),
        pytest.param(LANDED_TO, EpochEnd(5, 0), True, 5, id="cut just behind it"),
        # Invariant 1.
        pytest.param(LANDED_TO, EpochEnd(8, 0), True, 5, id="cut beyond the frontier"),
        pytest.param(LANDED_TO, EpochEnd(8, 8), False, None, id="the epoch is forgotten"),
        pytest.param(LANDED_TO, EpochEnd(8, 7), True, 5, id="the record has expired"),
        pytest.param(HOLES_ALONE, EpochEnd(8, 0), False, 3, id="no record was landed"),
    ],
)
def test_from_where_a_cut_log_is_due_again(
    account: GenerationAccount, end: EpochEnd | None, is_claimed: bool, due: int | None
) -> None:
    assert due_again_from(account, end) == due
    assert (end is not None and claims_anchor(account, end)) is is_claimed


@pytest.mark.parametrize(
    ("account", "epoch"),
    [
        (NEW, None),
        (replace(NEW, seen_epoch=7), None),
        (LANDED_TO, 0),
        (SEEN, 0),
        (WITHOUT_EPOCHS, None),
        (replace(WITHOUT_EPOCHS, seen_epoch=7), 7),
        (HOLES_ALONE, 7),
    ],
)
def test_which_epoch_is_asked(account: GenerationAccount, epoch: int | None) -> None:
    assert epoch_to_ask(account) == epoch
