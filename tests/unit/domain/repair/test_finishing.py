"""Which batches a repair adopts: rules 2 and 3 of `finishing`, and no more than it carries out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import BatchStatus, CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.repair.finishing import Adopt, adopted, finish
from tallystick.domain.rules.n3_unfinished_batch import LEFT_BEHIND
from tallystick.domain.rules.stored_finding import StoredFinding
from tests.support.builders import a_finding, a_snapshot, a_status, a_stored, planned

MINE, OTHER, REPAIR = (BatchId(each * 16) for each in "abc")
NAMED = Adopt(MINE, 1)


def status(batch_id: BatchId) -> BatchStatus:
    """An unfinished batch; that of a repair replaces a file."""
    found = a_status(planned(0, 5), batch_id=batch_id, lease_seconds_left=60.0)
    if batch_id == REPAIR:
        replaces = (CommittedFile(MINE, "part-0.parquet"),)
        return replace(found, plan=replace(found.plan, replaces=replaces))
    return found


def facts(*adoptable: BatchId) -> RepairFacts:
    """Three unfinished batches, one of them an earlier repair's; these may be adopted."""
    return RepairFacts(
        accounts=Accounts({}, [status(each) for each in (MINE, OTHER, REPAIR)]),
        snapshot=a_snapshot({}),
        manifests={},
        missing=(),
        in_staging=(),
        replaced=(),
        cut_at={},
        roots=(),
        is_operators_word=False,
        is_ledger_behind=False,
        adoptable=adoptable,
    )


@pytest.mark.parametrize(
    ("named", "free", "most", "expected"),
    [
        ([], (MINE, OTHER, REPAIR), 5, (REPAIR,)),
        ([NAMED], (MINE, OTHER, REPAIR), 5, (MINE, OTHER, REPAIR)),
        ([NAMED], (OTHER,), 5, (OTHER,)),
        ([NAMED], (MINE, OTHER, REPAIR), 2, (MINE, OTHER)),
        ([NAMED], (MINE, OTHER, REPAIR), 0, ()),
        ([NAMED], (MINE, OTHER, REPAIR), -1, ()),
    ],
    ids=["repairs alone", "all with N3", "none that is held", "two fit", "full", "over full"],
)
def test_what_is_adopted(
    named: Sequence[Adopt], free: Sequence[BatchId], most: int, expected: Sequence[BatchId]
) -> None:
    assert adopted(named, facts(*free), most_batches=most) == expected


def left_behind(batch_id: BatchId) -> StoredFinding:
    """The finding N3 about this batch."""
    found = a_finding(
        "N3", name=LEFT_BEHIND, partition=None, evidence={"batch": batch_id}, subject=batch_id
    )
    return a_stored(found)


def test_a_batch_that_nobody_holds_is_adopted() -> None:
    assert finish(left_behind(MINE), facts(MINE)) == NAMED


def test_a_batch_that_somebody_holds_is_left_to_him() -> None:
    said = finish(left_behind(MINE), facts(OTHER))
    assert isinstance(said, NotMended)
    assert "held by run 1 for 60 s more" in said.reason
