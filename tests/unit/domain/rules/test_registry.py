"""One table of rules, twice: in code, and told here by the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from tallystick.domain.batches.batch import CommittedFile, TriedBatch, WaitingBatch
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.standing_batch import SliceKey, StandingBatch
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.sameness import LogCheck, Sameness
from tallystick.domain.logs.snapshot import BatchHead, BrokerSnapshot, PartitionBounds, PastBounds
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.scrub import BoundedRuns, ReadFile, ReadSlice
from tallystick.domain.rows.second_read import Difference, SeenRecord, SliceRead
from tallystick.domain.rules.a3_log_cut import has_lost_unlanded
from tallystick.domain.rules.a6_ledger_unsound import (
    landed_in_two_lives,
    left_unread,
    overlaps_in_ledger,
    skips_in_ledger,
)
from tallystick.domain.rules.a7_short_read import short_read
from tallystick.domain.rules.a8_committed_file_missing import in_doubt
from tallystick.domain.rules.a9_stray_file import landed_inside, stray_files
from tallystick.domain.rules.a10_ledger_behind import ledger_behind, perhaps_landed
from tallystick.domain.rules.a11_unreadable_record import unreadable_record
from tallystick.domain.rules.b2_landed_twice import (
    HeldOffsets,
    shared_by_batches,
    shared_with_stray,
)
from tallystick.domain.rules.b3_payload_twice import payloads_twice
from tallystick.domain.rules.c2_aborted_landed import aborted_landed
from tallystick.domain.rules.c3_rows_differ import ComparedSlice, differing_rows, place_of
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings, ending_of
from tallystick.domain.rules.file_findings import FileRows
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, FindingCode, Level, Place
from tallystick.domain.rules.landed_files import judged, missing_or_changed
from tallystick.domain.rules.log_findings import change_findings, lost_finding
from tallystick.domain.rules.n1_overdue import missed_reconcile, missed_runs, unread_partitions
from tallystick.domain.rules.n2_stalled_stable_offset import stalled_stable_offsets
from tallystick.domain.rules.n3_unfinished_batch import (
    LostManifest,
    failing_batches,
    held_too_long,
    unfinished_batches,
    without_manifest,
)
from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.rule import Ending, Rule
from tallystick.domain.rules.u1_could_not_tell import (
    BROKER,
    DIRECTORY,
    MANIFEST,
    OTHER_FEED,
    ROWS_OF_UNKNOWN_FILE,
    SECOND_READER,
    STORAGE,
    STRAY,
    could_not_tell,
    unread_paths,
    unread_rows,
)
from tallystick.domain.rules.w1_loss_near import losses_near
from tallystick.domain.rules.z5_no_progress import frozen_time_index
from tests.support.builders import (
    BATCH,
    FEED,
    NOON,
    TOPIC,
    a_file,
    a_manifest,
    a_range,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)

LANDED = an_account(frontier=5, anchor_offset=4, last_seen_until=7)
KNOWN = by_partition(LANDED)
PLACE = Place(feed=FEED, topic=TOPIC, generation=1, partition=0)
FIVE = OffsetRuns.of([(0, 5)])
OLD = BatchHead(5, 6, 0, 100, None)
SUMS, RUNS = Fingerprint(9, 36, (1, 2), 0, 8), BoundedRuns.of(FIVE)
OTHER_SUMS = Fingerprint(9, 36, (1, 3), 0, 8)
ONE = a_file("one.parquet", FileSlice(0, 0, 8, 9), length_bytes=1_000)
LANDED_ONE = a_manifest(files=(ONE,))
AS_COMMITTED = StoredFile(ONE.length_bytes, ONE.checksum)


def changed(snapshot: BrokerSnapshot, first_batch: BatchHead | None = None) -> tuple[Finding, ...]:
    seen = Observation(snapshot, {}, {}, {0: first_batch} if first_batch else {})
    return change_findings(FEED, KNOWN, judge_logs(Accounts(KNOWN, ()), seen), seen)


def with_log(check: LogCheck, now: PartitionBounds) -> tuple[Finding, ...]:
    seen = Observation(a_snapshot({0: now}), {0: check}, {})
    return change_findings(FEED, KNOWN, judge_logs(Accounts(KNOWN, ()), seen), seen)


def read_in_full(found: ReadFile, taken: Fingerprint | None = None) -> tuple[Finding, ...]:
    """What a scrub says of the manifest's only file, whose bytes are those of its commit."""
    fingerprints = {SliceKey("one.parquet", 0): taken} if taken else {}
    batch = StandingBatch(LANDED_ONE, frozenset({"one.parquet"}), fingerprints)
    return judged(batch, {"one.parquet": found}, {"one.parquet": AS_COMMITTED}).findings


PURGED = changed(a_snapshot({0: bounds(6, 9)}), BatchHead(5, 9, None, 100, None))
SKIPPED = skips_in_ledger(FEED, LANDED, [a_range(0, 4)])

SEEN = SeenRecord.of(
    partition=0, offset=3, timestamp_ms=0, timestamp_type=0, key=None, value=b"v", headers=()
)
DIFFERING = ComparedSlice(SliceRead(a_range(0, 8), (), 0, 8), (Difference(3, SEEN, None),))

# Every rule, brought to say all that it can say.
HUNG = TriedBatch(LANDED_ONE.plan, 3, "disk full.", Owner("run 7"), 8 * 3600.0)
TOLD: Final[Mapping[str, Iterable[Finding]]] = {
    "A1": [
        *changed(a_snapshot({0: bounds(6, 9), 1: bounds(6, 9)})),
        *PURGED,
        *perhaps_landed(PURGED),
    ],
    "A3": (
        *with_log(LogCheck(Sameness.CUT, 4), bounds(0, 4)),
        *with_log(LogCheck(Sameness.CUT, 4, is_overwritten=True), bounds(0, 9)),
        *with_log(LogCheck(Sameness.UNKNOWN), bounds(0, 9)),
    ),
    "A5": changed(a_snapshot({0: bounds(0, 9)}, topic_id="topic-id-2")),
    "A6": [
        *SKIPPED,
        *perhaps_landed(SKIPPED),
        left_unread(FEED, LANDED, a_range(5, 7)),
        *overlaps_in_ledger(FEED, LANDED, [a_range(0, 5), a_range(4, 6)]),
        landed_in_two_lives(FEED, LANDED, a_range(0, 5), 1),
    ],
    "A7": [short_read(LANDED_ONE.plan, a_range(5, 6))],
    "A8": [
        lost_finding(FEED, LANDED, a_range(0, 4), "A8"),
        *missing_or_changed(LANDED_ONE, "/d", {}),
        *in_doubt(missing_or_changed(LANDED_ONE, "/d", {}), ["/s"], ["/e"]),
        *in_doubt(missing_or_changed(LANDED_ONE, "/d", {}), (), ["/e"]),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS, missing=RUNS),))),
    ],
    "A9": [
        *stray_files(FEED, TOPIC, [StrayFile("/d/copy.parquet", {}), StrayFile("/d/a", {0: FIVE})]),
        *landed_inside(FEED, TOPIC, {"/d/payments": "payments"}),
    ],
    "A10": ledger_behind(FEED, TOPIC, {"/d": ()}, {"/bare": ()}),
    "A11": [unreadable_record(LANDED_ONE.plan, a_range(5, 6), "long overflow")],
    "B2": [
        *shared_by_batches(FEED, LANDED, [HeldOffsets("b", "f", FIVE, FIVE)]),
        *shared_with_stray(FEED, TOPIC, StrayFile("/d/gen=1/a.parquet", {0: FIVE}, kept={0: FIVE})),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS, doubled=RUNS),))),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS, foreign=RUNS),))),
    ],
    "B3": payloads_twice(PLACE, [Payload(0, 0, b"a"), Payload(1, 0, b"a")], timedelta(hours=1)),
    "C1": [
        *missing_or_changed(LANDED_ONE, "/d", {"one.parquet": StoredFile(1, None)}),
        *read_in_full(ReadFile("one.parquet", failure="CRC", is_damaged=True)),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS),)), taken=OTHER_SUMS),
    ],
    "C2": aborted_landed(LANDED_ONE.plan, "one.parquet", 0, FIVE, FIVE),
    "C3": differing_rows(LANDED_ONE, LANDED_ONE.files, [DIFFERING]),
    "N1": [
        *unread_partitions(FEED, {}, a_snapshot({0: bounds(0, 9)})),
        *missed_runs(
            FEED,
            KNOWN,
            a_snapshot({0: bounds(0, 9)}),
            isolation=Isolation.READ_COMMITTED,
            idle=timedelta(hours=4),
            run_period=timedelta(hours=1),
        ),
        *missed_reconcile(FEED, TOPIC, NOON - timedelta(days=3), timedelta(hours=1), NOON),
    ],
    "N2": stalled_stable_offsets(
        FEED,
        KNOWN,
        a_snapshot({0: bounds(0, 9, last_stable_offset=5)}),
        Outlook(past={0: [PastBounds(NOON - timedelta(hours=1), 8, 5)]}),
        isolation=Isolation.READ_COMMITTED,
        now=NOON,
    ),
    "N3": [
        *unfinished_batches(FEED, TOPIC, [WaitingBatch(BATCH, BatchState.LANDING, 3601)]),
        *without_manifest(FEED, TOPIC, {"/d": LostManifest()}),
        *unfinished_batches(FEED, TOPIC, [WaitingBatch(BATCH, BatchState.COMMITTED, 0)]),
        *held_too_long(FEED, TOPIC, [HUNG], timedelta(hours=6)),
        *failing_batches(FEED, TOPIC, [HUNG]),
    ],
    "W1": losses_near(
        FEED,
        KNOWN,
        replace(a_snapshot({0: bounds(0, 9)}), retention_ms=1),
        Outlook({0: OLD}),
        now=NOON,
        warn=timedelta(hours=6),
        run_period=timedelta(hours=1),
    ),
    "Z5": frozen_time_index(
        FEED,
        KNOWN,
        a_snapshot({0: bounds(0, 9)}),
        isolation=Isolation.READ_COMMITTED,
        cuts={0: 5},
        after_now={0: 5},
    ),
    "U1": [
        *(
            could_not_tell(each, FEED, TOPIC, "nobody answers.", what="Kafka", seen_at=NOON)
            for each in (BROKER, STORAGE, SECOND_READER)
        ),
        *(
            found
            for each in (DIRECTORY, MANIFEST, OTHER_FEED, STRAY)
            for found in unread_paths(each, FEED, TOPIC, {f"/d/{each.names}": "no permission."})
        ),
        unread_rows(FileRows(LANDED_ONE.plan, ONE, 0), "no permission", ROWS_OF_UNKNOWN_FILE),
        *read_in_full(ReadFile("one.parquet", failure="no DataNode")),
    ],
}


def test_every_code_has_one_rule_in_the_order_of_the_codes() -> None:
    assert [rule.code for rule in RULES] == list(FindingCode)
    assert list(TOLD) == [code.value for code in FindingCode]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_a_rule_says_what_the_table_says(rule: Rule) -> None:
    # Invariant 1 of `rule`.
    told = list(TOLD[rule.code.value])

    assert {each.code for each in told} == {rule.code}
    assert {each.verdict for each in told} == set(rule.verdicts)
    assert {each.level for each in told} == set(rule.levels)
    assert {each.name for each in told} == set(rule.names or [rule.name])
    assert all(each.cause.endswith(".") and len(each.next_step) > 20 for each in told)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_two_levels_never_speak_of_one_finding(rule: Rule) -> None:
    """Each would put its own evidence in the other's place, and end what the other has found."""
    levels: dict[object, set[Level]] = {}
    for each in TOLD[rule.code.value]:
        levels.setdefault(each.key, set()).add(each.level)
    assert all(len(each) == 1 for each in levels.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_whatever_is_told_has_an_ending_that_ends_it(rule: Rule) -> None:
    # Invariant 3 of `rule`.
    after = by_partition(replace(LANDED, ordinal=2, frontier=9))
    for each in TOLD[rule.code.value]:
        named = {key: str(each.evidence[key]) for key in ("batch", "file") if key in each.evidence}
        clean = {BatchId(named["batch"]): True} if "batch" in named else {}
        look = Heard(
            NOON,
            a_snapshot({each.partition or 0: bounds(0, 9)}),
            storage=True,
            read_in_full=clean,
            offsets_read=clean,
            equal_again={place_of(each)},
            payloads=Payloads.COMPARED,
        )
        is_ended = bool(ended_findings({1: each}, (), look, after))
        match ending_of(each):
            case Ending.ACCEPTANCE:
                assert not is_ended
            case Ending.REPAIR:
                repaired = replace(
                    look, replaced={CommittedFile(BatchId(named["batch"]), named["file"])}
                )
                assert ended_findings({1: each}, (), repaired, after)
            case Ending.NEW_GENERATION:
                assert is_ended or has_lost_unlanded(each)
            case _:
                assert is_ended


@pytest.mark.parametrize("code", TOLD)
def test_every_finding_says_what_it_comes_from_in_words_of_its_own(code: str) -> None:
    words = {each.trouble for each in TOLD[code]}
    assert all(words), code
    assert not [each for each in words if "None" in each or "  " in each], words


def test_whatever_a_rule_says_fails_a_reconcile() -> None:
    for rule in RULES:
        assert set(rule.verdicts) <= FAILING_VERDICTS
