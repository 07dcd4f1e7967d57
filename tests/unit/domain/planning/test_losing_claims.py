"""A claim stands while files of an attempt may hold it.

The numbers are those of invariants of `log_judgement`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.attempts.last_copies import KeptFiles, ProvablePart
from tallystick.domain.attempts.staged import HeldFiles, Staged
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.logs.sameness import SAME
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.planning.pending_losses import PendingLosses
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.log_findings import change_findings
from tallystick.domain.verdicts import Verdict
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


def changes_when(staged: Staged) -> LogChanges:
    """Of a dead batch that claims [5, 9), of which the log has [8, 9)."""
    return judge_logs(Accounts({0: ACCOUNT}, [BATCH]), SEEN, staged)


def told(changes: LogChanges) -> Finding:
    [found] = change_findings("orders", {0: ACCOUNT}, changes, SEEN)
    return found


def there(*held: HeldFiles, quarantined: tuple[KeptFiles, ...] = (), token: int = 0) -> Staged:
    """What was listed while the batch's newest attempt had this token."""
    return Staged(held, quarantined, {BATCH.plan.batch_id: FencingToken(token)})


@pytest.mark.parametrize(
    ("staged", "is_lost"),
    [(Staged(), True), (there(), True), (there(token=1), False), (Staged(tokens={}), False)],
    ids=["dead ones hold nothing", "nothing listed", "one has begun since", "planned since"],
)
def test_no_claim_is_lost_that_an_attempt_may_hold_which_nobody_has_listed(
    staged: Staged, is_lost: bool
) -> None:
    # Invariant 5 of `log_judgement`.
    changes = changes_when(staged)
    assert [each.offsets for each in changes.cuts] == ([a_range(5, 8)] if is_lost else [])
    assert changes.lost == ()
    assert bool(changes.in_danger) is is_lost


def test_a_loss_names_where_files_are_kept_that_may_hold_it() -> None:
    found = told(
        changes_when(there(quarantined=(KeptFiles("/kept/here", TOPIC_ID, (a_range(4, 6),)),)))
    )
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
    found = told(changes_when(there(quarantined=tuple(filter(None, [other])))))
    assert "kept" not in found.evidence
    assert found.cause == "the log start passed these offsets before they were read."


def held(*pairs: tuple[int, int], partition: int = 0, topic_id: str | None = TOPIC_ID) -> HeldFiles:
    """A directory that may hold these offsets; anything without a pair."""
    offsets = tuple(a_range(*each, partition=partition) for each in pairs) or None
    files = KeptFiles("/quarantine/1", topic_id, offsets)
    return HeldFiles("/staging/1", None, "it is refused.", files)


@pytest.mark.parametrize(
    ("files", "lost", "stands"),
    [
        (held((5, 9)), [], [a_range(5, 8)]),
        (held((7, 9)), [a_range(5, 7)], [a_range(7, 8)]),
        (held((5, 6)), [], [a_range(5, 8)]),
        (held((6, 7)), [a_range(5, 6)], [a_range(6, 8)]),
        (held((5, 6), (7, 8)), [], [a_range(5, 8)]),
        (held(), [], [a_range(5, 8)]),
        (held(topic_id=None), [], [a_range(5, 8)]),
        (held((8, 9)), [a_range(5, 8)], []),
        (held((5, 9), partition=1), [a_range(5, 8)], []),
        (held((5, 9), topic_id="another-life"), [a_range(5, 8)], []),
    ],
)
def test_a_claim_stands_as_far_as_files_may_hold_it(
    files: HeldFiles, lost: list[OffsetRange], stands: list[OffsetRange]
) -> None:
    # Invariant 6 of `log_judgement`.
    changes = changes_when(there(files))
    assert [each.offsets for each in changes.cuts] == lost
    assert [each.offsets for each in changes.held] == stands
    assert not changes.lost


@pytest.mark.parametrize(
    ("pieces", "lost"),
    [
        ([(10, 20)], [a_range(20, 30)]),
        ([(20, 30)], [a_range(10, 20)]),
        ([(15, 20)], [a_range(10, 15), a_range(20, 30)]),
        ([(12, 14), (16, 18)], [a_range(10, 12), a_range(18, 30)]),
        ([(10, 30)], []),
    ],
)
def test_each_offset_of_a_claim_that_is_gone_is_lost_or_told_as_unknown(
    pieces: list[tuple[int, int]], lost: list[OffsetRange]
) -> None:
    # Invariant 6 of `log_judgement`.
    batch = a_status(planned(10, 30))
    account = an_account(frontier=10, beyond=[(10, 30)], anchor_offset=9)
    seen = Observation(a_snapshot({0: bounds(30, 40)}), {0: SAME}, {})
    changes = judge_logs(Accounts({0: account}, [batch]), seen, Staged([held(*pieces)]))
    assert [each.offsets for each in changes.cuts] == lost
    told = [each.offsets for each in (*changes.cuts, *changes.held)]
    assert union_of(told) == (a_range(10, 30),)
    assert sum(each.span for each in told) == 20, "each of them once"


@pytest.mark.parametrize(
    ("files", "lost", "stands"),
    [
        (held((5, 6)), [a_range(6, 8)], [a_range(5, 6)]),
        (held((6, 7)), [a_range(5, 6), a_range(7, 8)], [a_range(6, 7)]),
        (held(), [], [a_range(5, 8)]),
        (held((8, 9)), [a_range(5, 8)], []),
    ],
)
def test_what_nobody_claims_is_lost_but_for_what_files_may_hold(
    files: HeldFiles, lost: list[OffsetRange], stands: list[OffsetRange]
) -> None:
    # Invariant 6 of `log_judgement`.
    account = an_account(frontier=5, anchor_offset=4)
    changes = judge_logs(Accounts({0: account}, []), SEEN, Staged([files]))
    assert [each.offsets for each in changes.lost] == lost
    assert [each.offsets for each in changes.held] == stands


def test_what_attempts_may_hold_is_unknown_and_provisional() -> None:
    found = told(changes_when(there(held((5, 9)))))
    assert (found.verdict, found.is_provisional) == (Verdict.UNKNOWN, True)
    assert found.cause.endswith("But attempts may hold them: /staging/1: it is refused.")


def test_a_living_attempt_is_not_told_of_as_unknown() -> None:
    living = replace(BATCH, lease_seconds_left=9.0)
    accounts = Accounts({0: ACCOUNT}, [living])
    assert not judge_logs(accounts, SEEN, Staged([held((5, 9))])).held


def test_a_new_log_waits_for_what_nobody_claims_and_files_may_hold() -> None:
    account = an_account(frontier=5, anchor_offset=4, topic_id="old")
    staged = Staged([held((5, 9), topic_id="old")])
    seen = Observation(a_snapshot({0: bounds(0, 12)}), {}, {})
    changes = judge_logs(Accounts({0: replace(account, last_seen_until=9)}, []), seen, staged)
    assert (len(changes.waiting), changes.closed, changes.opened) == (1, (), ())
    assert [each.offsets for each in changes.held] == [a_range(5, 9)]
    assert not changes.lost


def test_a_new_log_waits_for_no_files_whose_offsets_are_landed() -> None:
    account = an_account(frontier=5, beyond=[(8, 10)], anchor_offset=4, topic_id="old")
    staged = Staged([held((8, 10), topic_id="old")])
    seen = Observation(a_snapshot({0: bounds(0, 12)}), {}, {})
    changes = judge_logs(Accounts({0: replace(account, last_seen_until=10)}, []), seen, staged)
    assert (len(changes.closed), len(changes.opened), changes.waiting) == (1, 1, ())
    assert [each.offsets for each in changes.lost] == [a_range(5, 8)]
    assert changes.held == ()


def test_the_unproven_end_of_a_claim_beside_a_repair_of_a_cut_log_is_lost_as_expired() -> None:
    # The repair's claim on this partition, too, is released for what stopped another one.
    released = CutClaim(
        BatchId("repair"),
        ACCOUNT.generation_id,
        a_range(2, 4),
        RangeState.RELEASED,
        FindingCode.LOG_CUT,
    )
    accounts, nobody = Accounts({0: ACCOUNT}, [BATCH]), frozenset[BatchId]()
    look = PendingLosses(accounts, SEEN, LogChanges(cuts=(released,)), nobody, nobody)
    [part] = BATCH.plan.ranges
    given_up = look.given_up(BATCH.plan, (ProvablePart(part, a_range(7, 9)),), ())

    found = told(given_up)

    assert (found.code, found.from_offset, found.until_offset) == (FindingCode.EXPIRED, 5, 7)
