"""No claim is lost before the batch's attempts were asked what they hold.

The number is that of an invariant of `log_changes`.
"""

from __future__ import annotations

import pytest

from tallystick.domain.findings import Finding
from tallystick.domain.identities import FencingToken
from tallystick.domain.last_copies import KeptFiles
from tallystick.domain.log_changes import (
    Accounts,
    Asked,
    LogChanges,
    Observation,
    log_changes,
)
from tallystick.domain.log_rules import change_findings
from tallystick.domain.sameness import SAME
from tests.support.builders import (
    TOPIC_ID,
    a_range,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    planned,
)

ACCOUNT = an_account(frontier=5, beyond=[(5, 9)], anchor_offset=4)
BATCH = a_status(planned(5, 9))
SEEN = Observation(a_snapshot({0: bounds(8, 12)}), {0: SAME}, {})


def changes_when(asked: Asked | None) -> LogChanges:
    """Of a dead batch that claims [5, 9), of which the log has [8, 9)."""
    return log_changes(Accounts({0: ACCOUNT}, [BATCH]), SEEN, asked or Asked())


def told(changes: LogChanges) -> Finding:
    [found] = change_findings("orders", {0: ACCOUNT}, changes, SEEN)
    return found


def answer(*kept: KeptFiles) -> Asked:
    return Asked({BATCH.plan.batch_id: FencingToken(0)}, kept)


@pytest.mark.parametrize(
    ("asked", "is_lost"),
    [
        (None, False),
        (Asked({BATCH.plan.batch_id: FencingToken(0)}), True),
        (Asked({BATCH.plan.batch_id: FencingToken(1)}), False),
    ],
    ids=["not asked", "asked", "an attempt has begun since it was asked"],
)
def test_no_claim_is_lost_before_its_attempts_were_asked(
    asked: Asked | None, is_lost: bool
) -> None:
    # 5
    changes = changes_when(asked)
    assert [each.offsets for each in changes.cuts] == ([a_range(5, 8)] if is_lost else [])
    assert changes.lost == ()
    assert bool(changes.in_danger) is is_lost


def test_a_loss_names_where_files_are_kept_that_may_hold_it() -> None:
    found = told(changes_when(answer(KeptFiles("/kept/here", TOPIC_ID, (a_range(4, 6),)))))
    assert found.evidence["kept"] == ["/kept/here"]
    assert "are kept in /kept/here" in found.next_step
    assert found.cause.endswith("or before what was read was proven.")


@pytest.mark.parametrize(
    "other",
    [
        None,
        KeptFiles("/kept/here", TOPIC_ID, (a_range(3, 5),)),
        KeptFiles("/kept/here", TOPIC_ID, (a_range(8, 9),)),
        KeptFiles("/kept/here", TOPIC_ID, (a_range(5, 8, partition=1),)),
        KeptFiles("/kept/here", "another-life", (a_range(5, 8),)),
    ],
    ids=["nothing", "before", "after", "another partition", "another log"],
)
def test_a_loss_of_which_nothing_is_kept_says_nothing_of_files(other: KeptFiles | None) -> None:
    found = told(changes_when(answer(*filter(None, [other]))))
    assert "kept" not in found.evidence
    assert found.cause == "the log start passed these offsets before they were read."
