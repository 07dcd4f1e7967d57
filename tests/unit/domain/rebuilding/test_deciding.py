"""What a rebuild decides from manifests: order, logs, doubles, contradictions, what gives way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tallystick.domain.batches.batch import BatchPlan, BatchStatus, CommittedFile
from tallystick.domain.batches.coverage import Held
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.batches.states import BatchState, RangeState
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rebuilding.deciding import committed_in, in_order, named, rebuild_plan
from tallystick.domain.rebuilding.plan import LedgerFacts, Logs, PublishedBatch, RebuildPlan
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tests.support.builders import (
    NOON,
    TOPIC_ID,
    a_batch,
    a_manifest,
    a_range,
    a_status,
    an_account,
    an_attempt,
    planned,
)


def manifest(
    name: str,
    from_offset: int,
    until_offset: int,
    *,
    ordinal: int = 1,
    hours: int = 0,
    replaces: Sequence[str] = (),
    partition: int = 0,
    topic_id: str = TOPIC_ID,
) -> Manifest:
    """A batch of one range; `replaces` are batches whose one file it replaces."""
    each = planned(from_offset, until_offset, partition=partition)
    plan = replace(
        a_batch(each, batch_id=BatchId(name), ordinal=ordinal, topic_id=topic_id),
        label=NOON + timedelta(hours=hours),
        replaces=tuple(CommittedFile(BatchId(old), f"{old}.parquet") for old in replaces),
    )
    proven = AccountedRange(each, each.offsets.span)
    attempt = replace(an_attempt(), batch_id=plan.batch_id)
    return replace(a_manifest(proven), plan=plan, attempt=attempt)


def logs(*accounts: GenerationAccount) -> Logs:
    return {(each.partition.partition, each.ordinal): each for each in accounts}


def names(found: Sequence[BatchPlan | PublishedBatch]) -> list[str]:
    return [each.batch_id if isinstance(each, BatchPlan) else each.plan.batch_id for each in found]


def ordered(manifests: Sequence[Manifest]) -> list[str]:
    return names(in_order(each.plan for each in manifests))


def decided(
    facts: LedgerFacts, readable: Sequence[Manifest], proven: Sequence[Manifest]
) -> RebuildPlan:
    plans = [each.plan for each in readable]
    return rebuild_plan(facts, plans, [PublishedBatch.of(each) for each in proven])


NOTHING = LedgerFacts(logs={})
KNOWN = LedgerFacts(logs=logs(an_account()))


@pytest.mark.parametrize("seed", range(5))
def test_batches_stand_by_life_and_label_and_repairs_after_what_they_replace(seed: int) -> None:
    wanted = [
        manifest("b1", 0, 5),
        manifest("b2", 5, 9),
        manifest("a3", 9, 12, hours=1),
        manifest("a0", 0, 5, ordinal=2),
        manifest("a1", 0, 5, replaces=["b1"]),
        manifest("a2", 0, 5, replaces=["a1", "gone"]),
    ]
    mixed = list(wanted)
    Random(seed).shuffle(mixed)
    assert ordered(mixed) == [each.plan.batch_id for each in wanted]


def test_a_circle_of_repairs_comes_last() -> None:
    circle = [manifest("a1", 0, 5, replaces=["a2"]), manifest("a2", 0, 5, replaces=["a1"])]
    assert ordered([*circle, manifest("b1", 0, 5)]) == ["b1", "a1", "a2"]


def test_of_two_repairs_of_a_file_the_one_that_the_ledger_knows_is_kept() -> None:
    repair = manifest("a2", 0, 5, replaces=["b1"])
    [file] = repair.plan.replaces
    facts = LedgerFacts(logs(an_account()), committed={"b1"}, replaced={file: BatchId("a1")})
    plan = decided(facts, [repair], [repair])
    assert names(plan.enter) == []
    assert plan.left_out[0].reasons == (f"batch a1 has replaced {file.name} already",)


def test_of_two_repairs_of_a_file_the_first_is_entered() -> None:
    repairs = [manifest(each, 0, 5, replaces=["b1"]) for each in ("a1", "a2")]
    facts = LedgerFacts(logs(an_account()), committed={"b1"})
    plan = decided(facts, repairs, repairs)
    assert names(plan.enter) == ["a1"]
    assert "batch a1 has replaced" in plan.left_out[0].reasons[0]


def test_logs_are_opened_at_the_lowest_offset_of_any_manifest() -> None:
    proven = [manifest("b2", 5, 9), manifest("b4", 0, 3, ordinal=2, topic_id="topic-id-2")]
    readable = [manifest("b1", 2, 5), manifest("b3", 7, 9, partition=1), *proven]
    plan = decided(NOTHING, readable, proven)
    assert [
        (each.partition.partition, each.ordinal, each.topic_id, each.first_offset)
        for each in plan.opened
    ] == [(0, 1, TOPIC_ID, 2), (1, 1, TOPIC_ID, 7), (0, 2, "topic-id-2", 0)]
    assert names(plan.enter) == ["b2", "b4"]


def test_a_log_that_is_known_is_not_opened() -> None:
    plan = decided(KNOWN, [manifest("b1", 0, 5)], [manifest("b1", 0, 5)])
    assert (plan.opened, names(plan.enter)) == ([], ["b1"])


CONTRADICTIONS = {
    # id: what the ledger knows, the reason; an empty ledger's neighbour differs in one fact
    "none": (KNOWN, None),
    "a later life": (
        LedgerFacts(logs(an_account(ordinal=2))),
        "orders-0, generation 1: the ledger has a later life of this log, and not this one",
    ),
    "another log": (
        LedgerFacts(logs(an_account(topic_id="another"))),
        "orders-0, generation 1 is topic id another of cluster cluster-1 in the ledger,"
        " topic-id-1 of cluster cluster-1 in the manifest",
    ),
    "stopped": (
        LedgerFacts(logs(an_account(state=GenerationState.STOPPED))),
        "orders-0, generation 1 is stopped in the ledger",
    ),
    "a later beginning": (
        LedgerFacts(logs(an_account(first_offset=6, frontier=6))),
        "orders-0, generation 1 is accounted for from offset 6 on",
    ),
    "a loss": (
        LedgerFacts(logs(an_account()), lost={(0, 1): [a_range(0, 7)]}),
        "orders-0 [5, 7) is recorded as lost",
    ),
    "a loss of another life": (
        LedgerFacts(logs(an_account()), lost={(0, 2): [a_range(0, 7)]}), None
    ),
    "a loss beside it": (LedgerFacts(logs(an_account()), lost={(0, 1): [a_range(0, 5)]}), None),
    "an unfinished batch of this id with other claims": (
        LedgerFacts(
            logs(an_account()), unfinished=[a_status(planned(6, 9), batch_id=BatchId("b1"))]
        ),
        "the ledger's batch of this id is unfinished and claims orders-0 [6, 9)",
    ),
    "an unfinished batch of this id without claims": (
        LedgerFacts(logs(an_account()), unfinished=[a_status(batch_id=BatchId("b1"))]),
        "the ledger's batch of this id is unfinished and claims nothing",
    ),
    "a double": (
        LedgerFacts(logs(an_account()), held=[Held(a_range(8, 9), 1, BatchId("b0"))]),
        "orders-0 [8, 9) is in batch b0 already",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("facts", "reason"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_what_the_ledger_says_is_not_contradicted(facts: LedgerFacts, reason: str | None) -> None:
    plan = decided(facts, [manifest("b1", 5, 9)], [manifest("b1", 5, 9)])
    if reason is None:
        assert (names(plan.enter), plan.left_out) == (["b1"], [])
        return
    (left,) = plan.left_out
    assert (left.batch_id, left.reasons) == ("b1", (reason,))
    assert left.directory.endswith("/batch=b1")
    assert not plan.enter
    assert not plan.finish


def test_a_double_is_named_to_the_offset() -> None:
    manifests = [manifest("b1", 0, 10), manifest("b2", 7, 12, hours=1), manifest("b3", 12, 15)]
    plan = decided(NOTHING, manifests, manifests)
    assert names(plan.enter) == ["b1", "b3"]
    (found,) = plan.findings
    assert (found.code, found.verdict) == (FindingCode.LANDED_TWICE, Verdict.PROVEN_DUP)
    assert (found.generation, found.partition) == (1, 0)
    assert (found.from_offset, found.until_offset) == (7, 10)
    assert found.evidence["kept_batch"] == "b1"
    assert found.evidence["batch"] == "b2"


def test_a_batch_that_the_ledger_has_begun_is_finished() -> None:
    facts = LedgerFacts(
        logs(an_account()),
        unfinished=[a_status(planned(5, 9), state=BatchState.LANDING, batch_id=BatchId("b1"))],
    )
    plan = decided(facts, [manifest("b1", 5, 9)], [manifest("b1", 5, 9)])
    assert (names(plan.finish), plan.enter, plan.abandoned) == (["b1"], [], [])


IN_THE_WAY: dict[str, tuple[BatchStatus, bool]] = {
    "the same offsets": (a_status(planned(8, 12)), True),
    "offsets beside them": (a_status(planned(9, 12)), False),
    "another partition": (a_status(planned(8, 12, partition=1)), False),
    "a log that is over": (a_status(planned(0, 5, partition=2)), True),
}


@pytest.mark.parametrize(("status", "is_in_the_way"), IN_THE_WAY.values(), ids=IN_THE_WAY)
def test_what_is_in_the_way_is_given_up(status: BatchStatus, is_in_the_way: bool) -> None:
    known = logs(an_account(), an_account(partition=1), an_account(partition=2))
    facts = LedgerFacts(known, unfinished=[status])
    manifests = [
        manifest("b1", 5, 9),
        manifest("b2", 0, 5, partition=2, ordinal=2, topic_id="topic-id-2"),
    ]
    plan = decided(facts, manifests, manifests)
    assert plan.abandoned == ([status] if is_in_the_way else [])
    assert [(each.batch_id, each.offsets, each.becomes) for each in plan.cuts()] == [
        (status.plan.batch_id, each.offsets, RangeState.RELEASED)
        for each in status.plan.ranges
        if is_in_the_way
    ]


def test_a_repair_takes_the_place_of_what_is_on_record() -> None:
    repair = manifest("a1", 0, 5, replaces=["b1"])
    facts = LedgerFacts(logs(an_account(frontier=9)), committed={BatchId("b1")})
    plan = decided(facts, [repair], [repair])
    assert (plan.enter, plan.findings) == ([PublishedBatch.of(repair)], [])


def test_a_repair_of_nothing_on_record_is_a_batch_of_its_own() -> None:
    repair = manifest("a1", 0, 5, replaces=["b1"])
    (entered,) = decided(NOTHING, [repair], [repair]).enter
    assert entered.plan == replace(repair.plan, replaces=())


def test_a_repair_waits_for_the_batch_that_it_repaired() -> None:
    """Entered alone, it would keep the old batch out, and what only that one holds."""
    old, repair = manifest("b1", 0, 9), manifest("a1", 0, 5, replaces=["b1"])
    again = manifest("a2", 0, 5, replaces=["a1"])

    first = decided(NOTHING, [old, repair, again], [repair, again])
    later = decided(NOTHING, [old, repair, again], [old, repair, again])

    assert first.enter == []
    assert [each.reasons for each in first.left_out] == [
        ("it replaces files of batch b1, which must be entered first",),
        ("it replaces files of batch a1, which must be entered first",),
    ]
    assert (names(later.enter), later.left_out) == (["b1", "a1", "a2"], [])


def test_a_repair_of_half_of_what_is_on_record_is_left_out() -> None:
    repair = manifest("a1", 0, 5, replaces=["b1", "b2"])
    facts = LedgerFacts(logs(an_account(frontier=9)), committed={BatchId("b1")})
    (left,) = decided(facts, [repair], [repair]).left_out
    assert left.reasons == ("it replaces files of batches of which the ledger has only some",)


def test_a_manifest_takes_the_ledgers_generation_ids() -> None:
    known = logs(an_account(generation_id=7))
    wanted = manifest("b1", 0, 5).plan
    found = named(manifest("b1", 0, 5, replaces=["b0"]), wanted, known)
    assert found.plan.replaces == ()
    assert {each.generation_id for each in found.plan.ranges} == {GenerationId(7)}
    assert {each.planned.generation_id for each in found.ranges} == {GenerationId(7)}
    with pytest.raises(KeyError):
        named(manifest("b1", 0, 5, ordinal=2), wanted, known)


@pytest.mark.parametrize(
    ("account", "more", "expected"),
    [
        (an_account(), {}, []),
        (an_account(frontier=5), {}, []),
        (an_account(frontier=7), {}, [a_range(5, 7)]),
        (an_account(first_offset=6, frontier=7), {}, [a_range(6, 7)]),
        (an_account(frontier=20), {}, [a_range(5, 9)]),
        (an_account(beyond=[(7, 12)]), {}, [a_range(7, 9)]),
        (an_account(frontier=6, beyond=[(8, 12)]), {}, [a_range(5, 6), a_range(8, 9)]),
        (an_account(frontier=9), {"lost": {(0, 1): [a_range(0, 6)]}}, [a_range(6, 9)]),
        (an_account(beyond=[(7, 12)]), {"unfinished": [a_status(planned(7, 12))]}, []),
        (an_account(ordinal=2, frontier=9), {}, []),
    ],
)
def test_what_the_ledger_has_committed_of_a_batch(
    account: GenerationAccount, more: dict[str, Any], expected: list[OffsetRange]
) -> None:
    facts = LedgerFacts(logs(account), **more)
    assert committed_in(facts, manifest("b1", 5, 9).plan) == expected
