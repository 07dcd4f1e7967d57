"""One table of rules, three times: in code, in the runbook, and told here by the rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from tallystick.domain.batches.batch import CommittedFile, TriedBatch, WaitingBatch
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.standing_batch import SliceKey, StandingBatch
from tallystick.domain.batches.states import BatchState, HoleClass, Isolation
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
from tallystick.domain.rules.a6_offsets_skipped import skips_in_ledger
from tallystick.domain.rules.a7_short_read import short_read
from tallystick.domain.rules.a8_perhaps_elsewhere import perhaps_forgotten, perhaps_unasked
from tallystick.domain.rules.a9_stray_file import stray_files
from tallystick.domain.rules.a10_ledger_behind import ledger_behind, perhaps_landed
from tallystick.domain.rules.a11_unreadable_record import unreadable_record
from tallystick.domain.rules.b1_ledger_overlap import overlaps_in_ledger
from tallystick.domain.rules.b2_landed_twice import (
    HeldOffsets,
    shared_by_batches,
    shared_with_stray,
)
from tallystick.domain.rules.b3_payload_twice import Place, payloads_twice
from tallystick.domain.rules.c2_aborted_landed import aborted_landed
from tallystick.domain.rules.c3_evidence import ComparedSlice
from tallystick.domain.rules.c3_rows_differ import differing_rows, place_of
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings, ending_of
from tallystick.domain.rules.cut_log import has_lost_unlanded
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, FindingCode, Level
from tallystick.domain.rules.full_read import judged
from tallystick.domain.rules.listed_files import missing_or_changed
from tallystick.domain.rules.log_findings import change_findings, lost_finding
from tallystick.domain.rules.n1_unread_partition import unread_partitions
from tallystick.domain.rules.n2_stalled_stable_offset import stalled_stable_offsets
from tallystick.domain.rules.n3_unfinished_batch import (
    LostManifest,
    held_too_long,
    unfinished_batches,
    without_manifest,
)
from tallystick.domain.rules.n4_failing_batch import failing_batches
from tallystick.domain.rules.n5_no_run import missed_runs
from tallystick.domain.rules.proven_hole import HoleCount
from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, SubjectKind
from tallystick.domain.rules.u1_could_not_tell import could_not_compare, could_not_tell
from tallystick.domain.rules.u1_unread_storage import unlisted, unread_feeds, unread_strays
from tallystick.domain.rules.w1_loss_near import losses_near
from tallystick.domain.rules.z1_control_marker import control_markers
from tallystick.domain.rules.z2_aborted_record import aborted_records
from tallystick.domain.rules.z3_compacted_record import compacted_records
from tallystick.domain.rules.z4_nothing_there import nothing_there
from tallystick.domain.rules.z5_no_progress import frozen_time_index
from tallystick.domain.verdicts import Verdict
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
from tests.support.repository import DOCS, sections_of

LANDED = an_account(frontier=5, anchor_offset=4, last_seen_until=7)
KNOWN = by_partition(LANDED)
PLACE = Place(FEED, TOPIC, 1, 0)
FIVE = OffsetRuns.of([(0, 5)])
OLD = BatchHead(5, 6, 0, 100, None)
SUMS, RUNS = Fingerprint(9, 36, (1, 2), 0, 8), BoundedRuns.of(FIVE)
OTHER_SUMS = Fingerprint(9, 36, (1, 3), 0, 8)
ONE = a_file("one.parquet", FileSlice(0, 0, 8, 9), length_bytes=1_000)
MANIFEST = a_manifest(files=(ONE,))
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
    batch = StandingBatch(MANIFEST, frozenset({"one.parquet"}), fingerprints)
    return judged(batch, {"one.parquet": found}, {"one.parquet": AS_COMMITTED}).findings


PURGED = changed(a_snapshot({0: bounds(6, 9)}), BatchHead(5, 9, None, 100, None))
SKIPPED = skips_in_ledger(FEED, LANDED, [a_range(0, 4)])

SEEN = SeenRecord.of(
    partition=0, offset=3, timestamp_ms=0, timestamp_type=0, key=None, value=b"v", headers=()
)
DIFFERING = ComparedSlice(SliceRead(a_range(0, 8), (), 0, 8), (Difference(3, SEEN, None),))

# Every rule, brought to say all that it can say.
HUNG = TriedBatch(MANIFEST.plan, 3, "disk full.", Owner("run 7"), 8 * 3600.0)
TOLD: Final[Mapping[str, Iterable[Finding]]] = {
    "A1": changed(a_snapshot({0: bounds(6, 9), 1: bounds(6, 9)})),
    "A2": [*PURGED, *perhaps_landed(PURGED)],
    "A3": with_log(LogCheck(Sameness.CUT, 4), bounds(0, 4)),
    "A4": (
        *with_log(LogCheck(Sameness.CUT, 4, is_overwritten=True), bounds(0, 9)),
        *with_log(LogCheck(Sameness.UNKNOWN), bounds(0, 9)),
    ),
    "A5": changed(a_snapshot({0: bounds(0, 9)}, topic_id="topic-id-2")),
    "A6": [*SKIPPED, *perhaps_landed(SKIPPED)],
    "A7": [short_read(MANIFEST.plan, a_range(5, 6))],
    "A8": [
        lost_finding(FEED, LANDED, a_range(0, 4), "A8"),
        *missing_or_changed(MANIFEST, "/d", {}),
        *perhaps_forgotten(missing_or_changed(MANIFEST, "/d", {}), [MANIFEST.plan]),
        *perhaps_unasked(missing_or_changed(MANIFEST, "/d", {}), ["/e"]),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS, missing=RUNS),))),
    ],
    "A9": stray_files(
        FEED, TOPIC, [StrayFile("/d/copy.parquet", {}), StrayFile("/d/a", {0: FIVE})]
    ),
    "A10": ledger_behind(FEED, TOPIC, {"/d": ()}, {"/bare": ()}),
    "A11": [unreadable_record(MANIFEST.plan, a_range(5, 6), "long overflow")],
    "B1": overlaps_in_ledger(FEED, LANDED, [a_range(0, 5), a_range(4, 6)]),
    "B2": [
        *shared_by_batches(FEED, LANDED, [HeldOffsets("b", "f", FIVE, FIVE)]),
        *shared_with_stray(FEED, TOPIC, StrayFile("/d/gen=1/a.parquet", {0: FIVE}, kept={0: FIVE})),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS, doubled=RUNS),))),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS, foreign=RUNS),))),
    ],
    "B3": payloads_twice(PLACE, [Payload(0, 0, b"a"), Payload(1, 0, b"a")], timedelta(hours=1)),
    "C1": [
        *missing_or_changed(MANIFEST, "/d", {"one.parquet": StoredFile(1, None)}),
        *read_in_full(ReadFile("one.parquet", failure="CRC", is_damaged=True)),
        *read_in_full(ReadFile("one.parquet", (ReadSlice(0, SUMS),)), taken=OTHER_SUMS),
    ],
    "C2": aborted_landed(MANIFEST.plan, "one.parquet", 0, FIVE, FIVE),
    "C3": differing_rows(MANIFEST, MANIFEST.files, [DIFFERING]),
    "N1": unread_partitions(FEED, {}, a_snapshot({0: bounds(0, 9)})),
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
        *held_too_long(FEED, TOPIC, [HUNG], timedelta(hours=6)),
    ],
    "N4": failing_batches(FEED, TOPIC, [HUNG]),
    "N5": missed_runs(
        FEED,
        KNOWN,
        a_snapshot({0: bounds(0, 9)}),
        isolation=Isolation.READ_COMMITTED,
        idle=timedelta(hours=4),
        run_period=timedelta(hours=1),
    ),
    "W1": losses_near(
        FEED,
        KNOWN,
        replace(a_snapshot({0: bounds(0, 9)}), retention_ms=1),
        Outlook({0: OLD}),
        now=NOON,
        warn=timedelta(hours=6),
        run_period=timedelta(hours=1),
    ),
    "Z1": [control_markers(FEED, TOPIC, HoleCount(1, 0, HoleClass.CONTROL, 3, 2, 9))],
    "Z2": [aborted_records(FEED, TOPIC, HoleCount(1, 0, HoleClass.ABORTED, 3, 2, 9))],
    "Z3": [compacted_records(FEED, TOPIC, HoleCount(1, 0, HoleClass.COMPACTED, 3, 2, 9))],
    "Z4": nothing_there(FEED, KNOWN, a_snapshot({0: bounds(5, 5)})),
    "Z5": frozen_time_index(
        FEED,
        KNOWN,
        a_snapshot({0: bounds(0, 9)}),
        isolation=Isolation.READ_COMMITTED,
        cuts={0: 5},
        after_now={0: 5},
    ),
    "U1": [
        could_not_compare(FEED, TOPIC, "it is away."),
        could_not_tell(FEED, TOPIC, Level.L1, what="Kafka", reason="no.", seen_at=NOON),
        could_not_tell(FEED, TOPIC, Level.L2, what="HDFS", reason="in safe mode.", seen_at=NOON),
        *unlisted(FEED, TOPIC, {"/d": "no permission."}),
        *unread_strays(FEED, TOPIC, [StrayFile("/d/copy.parquet", None, trouble="no permission.")]),
        *unread_feeds(FEED, TOPIC, {"/d/payments": "no permission."}),
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
            case Ending.ACCEPTANCE | Ending.NEVER_RECORDED:
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


def test_the_runbook_says_what_ends_each_code() -> None:
    written = sections_of(DOCS / "runbook.md", level=2)["Findings"]
    for ending in Ending:
        places = [
            rule.code.value + (_told(where) if len(set(rule.endings.values())) > 1 else "")
            for rule in RULES
            for where, by in rule.endings.items()
            if by is ending
        ]
        assert f"- {', '.join(places)}: {ending.value}." in " ".join(written.split()), ending


def _told(where: Level | SubjectKind) -> str:
    return f" at {where.value}" if isinstance(where, Level) else f" of {where.value}"


@pytest.mark.parametrize("code", TOLD)
def test_every_finding_says_what_it_comes_from_in_words_of_its_own(code: str) -> None:
    words = {each.trouble for each in TOLD[code]}
    assert all(words), code
    assert not [each for each in words if "None" in each or "  " in each], words


def test_what_is_benign_fails_nothing_and_all_else_fails() -> None:
    for rule in RULES:
        is_benign = rule.kind is RuleClass.BENIGN
        assert (set(rule.verdicts) == {Verdict.BENIGN_HOLE}) is is_benign
        assert set(rule.verdicts) <= FAILING_VERDICTS or is_benign


def test_the_runbooks_table_is_the_table_of_the_code() -> None:
    findings = sections_of(DOCS / "runbook.md", level=2)["Findings"]
    _, _, *rows = [line for line in findings.splitlines() if line.startswith("|")]
    written = [[cell.strip() for cell in re.split(r"\s\|\s", row.strip("| "))] for row in rows]

    assert written == [
        [
            rule.code.value,
            rule.name,
            rule.kind.value,
            rule.compares,
            ", ".join(rule.levels),
            ", ".join(rule.verdicts),
            rule.not_when,
        ]
        for rule in RULES
    ]
