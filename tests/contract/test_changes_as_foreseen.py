"""What changes are foreseen to leave is what the ledger holds once it has applied them."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.batch import CommittedFile, PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId, FeedName, GenerationId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.logs.sameness import SAME, LogCheck, Sameness
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.failing_batches import set_aside
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tests.support.ledger_story import MINUTE, NO_TIME, TOPIC, LedgerStory, snapshot_of

PARTITIONS = (0, 1)
END = 40
KINDS = ("free", "committed", "dead", "held", "unreadable", "lost", "repaired", "given up")
CHECKS = (SAME, SAME, SAME, LogCheck(Sameness.UNKNOWN), LogCheck(Sameness.CUT, 3))
_numbers = count(1)

segments = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 6)), max_size=4)


def cut(batch_id: BatchId, planned: PlannedRange, becomes: RangeState) -> CutClaim:
    return CutClaim(
        batch_id, planned.generation_id, planned.offsets, becomes, FindingCode.SHORT_READ
    )


def landed(story: LedgerStory, batch_id: BatchId) -> CommittedFile:
    """The file of one partition's batch, which is committed and published."""
    attempt = story.begin(batch_id)
    manifest = story.verify(attempt)
    story.ledger.commit(attempt)
    story.ledger.mark_published(batch_id)
    return CommittedFile(batch_id, manifest.files[0].name)


def make(story: LedgerStory, kind: str, *ranges: tuple[int, int, int]) -> None:
    """What stands at these offsets of the partitions: of one batch, where it is one."""
    if kind == "free":
        return
    if kind in ("repaired", "given up"):
        for each in ranges:
            file = landed(story, story.planned(each))
            again = story.batch_of(*([each] if kind == "repaired" else []))
            story.freeze(replace(again, replaces=(file,)), lease=NO_TIME)
        return
    batch_id = story.planned(*ranges, lease=MINUTE if kind == "held" else NO_TIME)
    if kind == "committed":
        attempt = story.begin(batch_id)
        story.verify(attempt)
        story.ledger.commit(attempt)
    elif kind == "unreadable":
        plan, attempt = story.status(batch_id).plan, story.begin(batch_id)
        firsts = [each.offsets.clipped(0, each.offsets.from_offset + 1) for each in plan.ranges]
        story.ledger.set_aside(attempt, set_aside(plan, [each for each in firsts if each]), ())
    elif kind == "lost":
        plan = story.status(batch_id).plan
        story.change(
            LogChanges(cuts=[cut(batch_id, each, RangeState.LOST) for each in plan.ranges])
        )


def build(story: LedgerStory, drawn: dict[int, list[tuple[str, int]]]) -> None:
    """Each partition's segments in their order; those in one place are of one batch if alike."""
    story.open(dict.fromkeys(PARTITIONS, (0, END)))
    places: dict[tuple[int, str], list[tuple[int, int, int]]] = {}
    for partition, of_partition in drawn.items():
        start = 0
        for place, (kind, width) in enumerate(of_partition):
            places.setdefault((place, kind), []).append((partition, start, start + width))
            start += width
    for (_, kind), ranges in places.items():
        make(story, kind, *ranges)


def changes_of(draw: st.DrawFn, accounts: Accounts) -> tuple[LogChanges, Observation]:
    """What a look at a drawn log changes, and more that a plan or a person may ask for."""
    starts = {partition: draw(st.integers(0, END)) for partition in PARTITIONS}
    seen = {each: (start, draw(st.integers(start, END + 9))) for each, start in starts.items()}
    seen[2] = (draw(st.integers(0, 5)), 9)
    for partition in PARTITIONS:
        if draw(st.integers(0, 5)) == 0:
            del seen[partition]
    is_same = draw(st.integers(0, 4)) > 0
    snapshot = snapshot_of(seen, topic_id="topic-id-1" if is_same else "topic-id-2")
    shown = {
        each: replace(bounds, leader_epoch=draw(st.sampled_from([0, 1, None])))
        for each, bounds in snapshot.partitions.items()
    }
    checks = {each: draw(st.sampled_from(CHECKS)) for each in shown if each in PARTITIONS}
    look = Observation(replace(snapshot, partitions=shown), checks if is_same else {}, {})
    changes = judge_logs(accounts, look)
    busy = {each.batch_id for each in changes.cuts}
    released = [
        cut(each.plan.batch_id, planned, RangeState.RELEASED)
        for each in accounts.unfinished
        if each.plan.batch_id not in busy and draw(st.booleans())
        for planned in each.plan.ranges
    ]
    again = [
        PlannedRange(account.generation_id, offsets)
        for account in accounts.generations.values()
        for offsets in account.unreadable
        if draw(st.booleans())
        and not any(each.offsets.intersection(offsets) for each in changes.lost)
    ]
    return replace(changes, cuts=(*changes.cuts, *released), due_again=again), look


def seen_in(snapshot: BrokerSnapshot, accounts: Accounts, changes: LogChanges) -> Accounts:
    """The accounts with their witnesses handed over, where the snapshot shows their very logs, and
    tells no older epoch than they have. Those of logs that were cut begin anew.
    """
    cut_now = {each.generation_id for each in (*changes.stopped, *changes.cut_again)}
    generations = dict(accounts.generations)
    for partition, account in accounts.generations.items():
        bounds = snapshot.partitions.get(partition)
        if bounds and account.state is not GenerationState.CLOSED and snapshot.is_of(account):
            is_cut = account.generation_id in cut_now
            until = max(0 if is_cut else account.last_seen_until, bounds.high_watermark)
            epoch, known = bounds.leader_epoch, account.seen_epoch
            if known is None or (epoch is not None and epoch >= known):
                generations[partition] = replace(account, last_seen_until=until, seen_epoch=epoch)
    return replace(accounts, generations=generations)


def witnesses(accounts: Accounts, before: Accounts) -> set[object]:
    """Of the logs that were known before."""
    known = {each.generation_id for each in before.generations.values()}
    return {
        (each.generation_id, each.last_seen_until, each.seen_epoch)
        for each in accounts.generations.values()
        if each.generation_id in known
    }


def alike(accounts: Accounts, before: Accounts) -> object:
    """The accounts, but for the ids of logs that were opened just now, and for time."""
    known = {each.generation_id for each in before.generations.values()}
    generations = {
        partition: account
        if account.generation_id in known
        else replace(account, generation_id=GenerationId(0))
        for partition, account in accounts.generations.items()
    }
    batches = [replace(each, lease_seconds_left=0.0) for each in accounts.unfinished]
    return generations, batches, accounts.retired_topic_ids


@settings(
    derandomize=True,
    max_examples=30,
)
@given(data=st.data())
def test_what_changes_are_foreseen_to_leave_is_what_the_ledger_holds(
    story: LedgerStory, data: st.DataObject
) -> None:
    feed = LedgerStory(story.dsn, FeedName(f"orders-{next(_numbers)}"))
    build(feed, {each: data.draw(segments) for each in PARTITIONS})
    before = feed.ledger.accounts(feed.feed)
    changes, seen = data.draw(st.composite(lambda draw: changes_of(draw, before))())

    with feed.ledger.planning(feed.feed, TOPIC) as session:
        session.apply(changes, seen.snapshot)
        held = session.accounts()

    foreseen = accounts_after(before, changes)
    assert witnesses(foreseen, before) <= witnesses(before, before), "only a look moves them"
    assert alike(seen_in(seen.snapshot, foreseen, changes), before) == alike(held, before)
    feed.ledger.close()
