"""What may become of files that can't commit any more: neighbours one fact apart.

The numbers are the module's invariants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tallystick.domain.attempts.last_copies import (
    AtRisk,
    CommittedCopy,
    DeadFiles,
    Fate,
    fate_of,
    provable_parts,
    relied_on,
)
from tallystick.domain.batches.accounting import RangeHoles
from tallystick.domain.batches.states import RangeState
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.builders import CLUSTER, TOPIC_ID, a_range, a_snapshot, bounds, planned

CLAIMED = AtRisk(
    a_range(10, 20), RangeState.CLAIMED, GenerationState.OPEN, cluster_id=CLUSTER, topic_id=TOPIC_ID
)
RELEASED = replace(CLAIMED, state=RangeState.RELEASED)
LOST = replace(CLAIMED, state=RangeState.LOST)
FILES = DeadFiles(holds_rows=True, is_whole=False, epochs={0: 3})
WHOLE = replace(FILES, is_whole=True)
READ_LATER = replace(FILES, epochs={0: 2})
NOW = a_snapshot({0: bounds(10, 30, leader_epoch=3)})

FATES: list[tuple[str, DeadFiles, Sequence[AtRisk], BrokerSnapshot | None, bool, Fate]] = [
    # files, what is at risk, the log now, the batch is over
    ("all committed elsewhere", FILES, (), None, True, Fate.DELETED),
    ("nothing was written", replace(FILES, holds_rows=False), [LOST], NOW, True, Fate.DELETED),
    ("the log has it as it was read", FILES, [CLAIMED], NOW, False, Fate.DELETED),
    ("the same, of a batch that is over", FILES, [RELEASED], NOW, True, Fate.DELETED),
    ("one that ended well", WHOLE, [CLAIMED], NOW, False, Fate.KEPT),
    ("the same, of a batch that is over", WHOLE, [RELEASED], NOW, True, Fate.KEPT),
    ("the same, and it is lost", WHOLE, [LOST], NOW, True, Fate.QUARANTINED),
    ("another leader since", READ_LATER, [CLAIMED], NOW, False, Fate.KEPT),
    ("the same, still due", READ_LATER, [RELEASED], NOW, True, Fate.KEPT),
    ("nobody knows when it was read", replace(FILES, epochs={}), [CLAIMED], NOW, False, Fate.KEPT),
    ("the broker is away", FILES, [CLAIMED], None, False, Fate.KEPT),
    ("the broker is away, still due", FILES, [RELEASED], None, True, Fate.KEPT),
    ("no leader", FILES, [RELEASED], a_snapshot({}), True, Fate.KEPT),
    (
        "the log begins after its first offset",
        FILES,
        [CLAIMED],
        a_snapshot({0: bounds(11, 30, leader_epoch=3)}),
        False,
        Fate.KEPT,
    ),
    (
        "the same, of a batch that is over, and no plan has said so",
        FILES,
        [RELEASED],
        a_snapshot({0: bounds(11, 30, leader_epoch=3)}),
        True,
        Fate.KEPT,
    ),
    (
        "the same, of a repair",
        FILES,
        [replace(RELEASED, replaces=True)],
        a_snapshot({0: bounds(11, 30, leader_epoch=3)}),
        True,
        Fate.QUARANTINED,
    ),
    (
        "the log ends before its last offset",
        FILES,
        [CLAIMED],
        a_snapshot({0: bounds(10, 19, leader_epoch=3)}),
        False,
        Fate.KEPT,
    ),
    ("lost", FILES, [LOST], NOW, True, Fate.QUARANTINED),
    ("lost, and the rest is landed still", FILES, [LOST], NOW, False, Fate.KEPT),
    ("lost, and the broker is away", FILES, [LOST], None, True, Fate.QUARANTINED),
    (
        "the log was cut",
        FILES,
        [replace(RELEASED, log=GenerationState.STOPPED)],
        NOW,
        True,
        Fate.QUARANTINED,
    ),
    (
        "the log was re-created",
        FILES,
        [replace(RELEASED, log=GenerationState.CLOSED)],
        a_snapshot({0: bounds(10, 30, leader_epoch=3)}, topic_id="another"),
        True,
        Fate.QUARANTINED,
    ),
    (
        "the same, and no plan has said so",
        FILES,
        [RELEASED],
        a_snapshot({0: bounds(10, 30, leader_epoch=3)}, topic_id="another"),
        True,
        Fate.KEPT,
    ),
]


@pytest.mark.parametrize("is_copied", [True, False])
@pytest.mark.parametrize(
    ("files", "at_risk", "snapshot", "is_over", "fate"),
    [row[1:] for row in FATES],
    ids=[f"{row[0]}, {row[5].value}" for row in FATES],
)
def test_nothing_is_deleted_that_may_be_the_only_copy(
    files: DeadFiles,
    at_risk: Sequence[AtRisk],
    snapshot: BrokerSnapshot | None,
    is_over: bool,
    fate: Fate,
    is_copied: bool,
) -> None:
    # Invariant 1 of `last_copies`. The fates are of files whose rows lie in committed ones as well.
    is_spared = not is_copied and fate is Fate.DELETED and files.holds_rows
    expected = Fate.KEPT if is_spared else fate

    assert (
        fate_of(files, at_risk, snapshot, is_over=is_over, is_copied=lambda: is_copied) is expected
    )


@pytest.mark.parametrize(
    ("files", "at_risk", "is_asked"),
    [
        (FILES, (), True),
        (FILES, [CLAIMED], True),
        (replace(FILES, holds_rows=False), [CLAIMED], False),
        (WHOLE, [CLAIMED], False),
        (FILES, [LOST], False),
    ],
)
def test_committed_files_are_read_only_where_the_answer_counts(
    files: DeadFiles, at_risk: Sequence[AtRisk], is_asked: bool
) -> None:
    asked = []

    def is_copied() -> bool:
        asked.append(True)
        return True

    fate_of(files, at_risk, NOW, is_over=True, is_copied=is_copied)

    assert bool(asked) is is_asked


PARTS: list[tuple[str, list[tuple[int, int]], int, tuple[int, int] | None, list[tuple[int, int]]]]
PARTS = [
    # unproven of [10, 20), log start, what is committed, what is lost
    ("all is proven", [], 20, (10, 20), []),
    ("the beginning is not", [(10, 12)], 20, (12, 20), [(10, 12)]),
    ("the end is not", [(18, 20)], 20, (10, 18), [(18, 20)]),
    ("both ends are not", [(10, 11), (19, 20)], 20, (11, 19), [(10, 11), (19, 20)]),
    ("nothing is", [(10, 20)], 20, None, [(10, 20)]),
    ("the log start is just behind the beginning", [(10, 12)], 12, (12, 20), [(10, 12)]),
]


@pytest.mark.parametrize(
    ("unproven", "start", "kept", "lost"), [row[1:] for row in PARTS], ids=[row[0] for row in PARTS]
)
def test_what_can_be_proven_is_committed_and_the_rest_is_lost_exactly(
    unproven: list[tuple[int, int]],
    start: int,
    kept: tuple[int, int] | None,
    lost: list[tuple[int, int]],
) -> None:
    # Invariant 2 of `last_copies`.
    parts = provable_parts([_gaps(unproven)], [OffsetRuns.of(unproven)], {0: start})
    assert parts is not None
    [part] = parts
    assert part.kept == (a_range(*kept) if kept else None)
    assert list(part.lost) == [a_range(*each) for each in lost]


@pytest.mark.parametrize(
    ("unproven", "start"),
    [([(14, 15)], 20), ([(18, 20)], 19), ([(10, 12)], 11)],
    ids=["between rows", "an end that can be read again", "a beginning that can be read again"],
)
def test_what_stands_in_the_way_keeps_all_from_being_committed(
    unproven: list[tuple[int, int]], start: int
) -> None:
    # Invariant 2 of `last_copies`.
    assert provable_parts([_gaps(unproven)], [OffsetRuns.of(unproven)], {0: start}) is None


def _gaps(unproven: list[tuple[int, int]]) -> RangeHoles:
    holes = OffsetRuns.of(unproven)
    return RangeHoles(planned(10, 20), OffsetRuns.of([(10, 20)]).difference(holes), holes)


@pytest.mark.parametrize(
    ("at_risk", "is_relied_on"),
    [
        ([], True),
        ([CLAIMED], False),
        ([replace(CLAIMED, offsets=a_range(10, 19))], True),
        ([replace(CLAIMED, offsets=a_range(10, 20, partition=1))], True),
    ],
)
def test_a_file_is_relied_on_for_what_is_not_at_risk_anyway(
    at_risk: Sequence[AtRisk], is_relied_on: bool
) -> None:
    copy = CommittedCopy("/landing", "a.parquet", 9, "CRC:00", a_range(10, 20))
    assert (copy in relied_on([copy], at_risk)) is is_relied_on
