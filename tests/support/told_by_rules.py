"""What each rule says of prepared facts, and how that changes as these become worse.

`WORSE` is the table by code; `TOLD` is all that stands in it, and what its pairs don't show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from typing import Final

from tallystick.domain.batches.batch import TriedBatch, WaitingBatch
from tallystick.domain.batches.landed import FileSlice, ReadBack
from tallystick.domain.batches.standing_batch import SliceKey, StandingBatch
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.identities import Owner
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.sameness import LogCheck, Sameness
from tallystick.domain.logs.snapshot import (
    BatchHead,
    BrokerSnapshot,
    PartitionBounds,
    PastBounds,
    WindowBorder,
)
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.scrub import BoundedRuns, ReadFile, ReadSlice
from tallystick.domain.rows.second_read import SeenRecord, SliceRead, differences
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
from tallystick.domain.rules.c3_rows_differ import ComparedSlice, differing_rows
from tallystick.domain.rules.file_findings import FileRows
from tallystick.domain.rules.findings import Finding, Place
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
from tallystick.domain.rules.storage_witness import judged, missing_or_changed, offset_findings
from tallystick.domain.rules.u1_could_not_tell import (
    BROKER,
    DIRECTORY,
    OTHER_FEED,
    ROWS_OF_UNKNOWN_FILE,
    SECOND_READER,
    STORAGE,
    STRAY,
    could_not_tell,
    unheard_partitions,
    unread_paths,
    unread_rows,
)
from tallystick.domain.rules.u1_could_not_tell import (
    MANIFEST as MANIFEST_UNREAD,
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
    read_back_of,
)

Told = Iterable[Finding]
HOUR, COMMITTED, LANDING = timedelta(hours=1), Isolation.READ_COMMITTED, BatchState.LANDING
PLACE, NINE = Place(feed=FEED, topic=TOPIC, generation=1, partition=0), an_account(frontier=9)
ONE = a_file("one.parquet", FileSlice(0, 0, 8, 9))
MANIFEST = a_manifest(files=(ONE,))
SUMS = Fingerprint(9, 36, (1, 2), 0, 8)
ANOTHER_FILE = StoredFile(1, "x:1")


def runs(*pairs: tuple[int, int]) -> OffsetRuns:
    return OffsetRuns.of(pairs)


def many(last: int) -> OffsetRuns:
    """More runs than a finding names; they differ in the last one only."""
    return runs(*((each, each + 1) for each in range(0, 400, 2)), (last, last + 1))


def of_log(
    now: PartitionBounds,
    check: LogCheck | None = None,
    head: BatchHead | None = None,
    topic_id: str = "topic-id-1",
    seen_until: int = 9,
) -> Told:
    known = by_partition(an_account(frontier=5, anchor_offset=4, last_seen_until=seen_until))
    snapshot = a_snapshot({0: now}, topic_id=topic_id)
    seen = Observation(snapshot, {0: check} if check else {}, {}, {0: head} if head else {})
    return change_findings(FEED, known, judge_logs(Accounts(known, ()), seen), seen)


def cut(at: int, *, is_overwritten: bool = False) -> Told:
    return of_log(bounds(0, 20), LogCheck(Sameness.CUT, at, is_overwritten=is_overwritten))


def stored(length_bytes: int, checksum: str | None, trouble: str | None = None) -> Told:
    now = StoredFile(length_bytes, checksum, trouble)
    return list(missing_or_changed(MANIFEST, "/d", {"one.parquet": now}))


def read_in_full(
    *,
    sums: Fingerprint = SUMS,
    now: StoredFile = ANOTHER_FILE,
    is_damaged: bool = False,
    **off: OffsetRuns,
) -> Told:
    batch = StandingBatch(
        MANIFEST,
        frozenset({"one.parquet"}),
        {SliceKey("one.parquet", 0): replace(SUMS, hash_sums=(0, 0))},
    )
    found = ReadSlice(0, sums, **{name: BoundedRuns.of(each) for name, each in off.items()})
    file = ReadFile("one.parquet", (found,))
    if is_damaged:
        file = ReadFile("one.parquet", failure="CRC", is_damaged=True)
    return judged(batch, {"one.parquet": file}, {"one.parquet": now}).findings


def of_rows(found: ReadBack) -> Told:
    return tuple(offset_findings(MANIFEST, (), found))


def record(offset: int, value: bytes) -> SeenRecord:
    place = {"partition": 0, "offset": offset, "timestamp_ms": 0, "timestamp_type": 0}
    return SeenRecord.of(**place, key=None, value=value, headers=())


def compared(value: bytes, *offsets: int) -> list[ComparedSlice]:
    served = tuple(record(each, value) for each in offsets)
    read = SliceRead(a_range(0, 8), served, 0, 8)
    landed = [record(each, b"landed") for each in offsets]
    return [ComparedSlice(read, differences(read, landed))]


def differing(value: bytes, *offsets: int) -> Told:
    slices = compared(value, *offsets)
    before = differing_rows(MANIFEST, MANIFEST.files, compared(b"a", 3))
    return differing_rows(MANIFEST, MANIFEST.files, slices, before)


def stalled(stable: int, *, minutes: int = 0) -> Told:
    now = a_snapshot({0: bounds(0, 12 + minutes, last_stable_offset=stable)})
    return stalled_stable_offsets(
        FEED,
        by_partition(an_account(frontier=5)),
        now,
        Outlook(past={0: [PastBounds(NOON - HOUR, 11, stable)]}),
        isolation=COMMITTED,
        now=NOON + timedelta(minutes=minutes),
    )


def tried(seconds: float = 9 * 3600, reason: str = "disk full.", holder: str = "run 7") -> Told:
    batch = TriedBatch(MANIFEST.plan, 3 + int(seconds // 40_000), reason, Owner(holder), seconds)
    return [*held_too_long(FEED, TOPIC, [batch], 6 * HOUR), *failing_batches(FEED, TOPIC, [batch])]


def waiting(state: BatchState, seconds: float = 7200) -> Told:
    return unfinished_batches(FEED, TOPIC, [WaitingBatch(BATCH, state, seconds)])


def frozen(cut_at: int, until: int = 9) -> Told:
    border = WindowBorder(NOON, {0: cut_at}, {}, {0: cut_at})
    snapshot = replace(a_snapshot({0: bounds(0, until)}), border=border)
    known = by_partition(an_account(frontier=5))
    return [*frozen_time_index(FEED, known, snapshot, COMMITTED)]


def near(retention_ms: int, later: timedelta = timedelta(), until: int = 9) -> Told:
    return losses_near(
        FEED,
        by_partition(an_account(frontier=5)),
        replace(a_snapshot({0: bounds(0, until)}), retention_ms=retention_ms),
        Outlook({0: BatchHead(5, 6, 0, 100, None)}),
        now=NOON + later,
        warn=6 * HOUR,
        run_period=HOUR,
    )


def no_run(later: timedelta = timedelta(), frontier: int = 5) -> Told:
    return missed_runs(
        FEED,
        by_partition(an_account(frontier=frontier)),
        a_snapshot({0: bounds(0, 9 + later // HOUR)}),
        isolation=COMMITTED,
        idle=4 * HOUR + later,
        run_period=HOUR,
    )


def unread(first: int, until: int = 9) -> Told:
    return unread_partitions(FEED, {}, a_snapshot({0: bounds(first, until)}))


def not_listed(last_seen_until: int) -> Told:
    account = an_account(frontier=5, last_seen_until=last_seen_until)
    snapshot: BrokerSnapshot = replace(a_snapshot({}), unlisted=frozenset({0}))
    return unheard_partitions(FEED, by_partition(account), snapshot)


def landed_at(*held: HeldOffsets) -> Told:
    return shared_by_batches(FEED, NINE, held)


def held(place: str, doubled: OffsetRuns | None = None) -> HeldOffsets:
    return HeldOffsets(place, place, runs((0, 5)), doubled or OffsetRuns())


def beside(offsets: OffsetRuns) -> Told:
    stray = StrayFile("/d/gen=1/copy.parquet", {0: offsets}, kept={0: offsets})
    return tuple(shared_with_stray(FEED, TOPIC, stray))


def payloads(*hashes: bytes) -> Told:
    rows = [Payload(offset, 0, each) for offset, each in enumerate(hashes)]
    return payloads_twice(PLACE, rows, HOUR)


def aborted(*pairs: tuple[int, int]) -> Told:
    both = runs(*pairs)
    return aborted_landed(MANIFEST.plan, "one.parquet", 0, both, both)


def overlap(*pairs: tuple[int, int]) -> Told:
    return overlaps_in_ledger(FEED, NINE, [a_range(*each) for each in pairs])


def lives(earlier: int) -> Finding:
    return landed_in_two_lives(FEED, an_account(ordinal=3), a_range(0, 5), earlier)


def manifest(length_bytes: int | None, digest: str | None = None) -> Told:
    return without_manifest(FEED, TOPIC, {"/d": LostManifest(length_bytes, digest)})


def stray(length_bytes: int, changed_ms: int) -> Told:
    found = StrayFile("/d/a", {0: runs((0, 5))}, length_bytes=length_bytes, changed_ms=changed_ms)
    return stray_files(FEED, TOPIC, [found])


def sole(offsets: OffsetRuns) -> Told:
    return stray_files(FEED, TOPIC, [StrayFile("/d/a", {0: offsets})])


def unread_stray(path: str) -> Told:
    return unread_paths(STRAY, FEED, TOPIC, {path: "no."})


# By code: what has become worse, as it was before, and as it is then.
WORSE: Final[Mapping[str, Mapping[str, tuple[Told, Told]]]] = {
    "A1": {
        "more has expired": (of_log(bounds(6, 9)), of_log(bounds(7, 9))),
        "more was deleted": (
            of_log(bounds(6, 9), head=BatchHead(5, 9, None, 1, None)),
            of_log(bounds(7, 9), head=BatchHead(5, 9, None, 1, None)),
        ),
    },
    "A3": {
        "it was cut deeper": (cut(4), cut(3)),
        "it has grown again": (cut(4), cut(4, is_overwritten=True)),
        "it had grown again, and was cut deeper": (
            cut(4, is_overwritten=True),
            cut(3, is_overwritten=True),
        ),
        "more had been seen": (
            of_log(bounds(0, 20), LogCheck(Sameness.UNKNOWN), seen_until=9),
            of_log(bounds(0, 20), LogCheck(Sameness.UNKNOWN), seen_until=10),
        ),
    },
    "A5": {
        "more had been readable": (
            of_log(bounds(0, 9), topic_id="new", seen_until=9),
            of_log(bounds(0, 9), topic_id="new", seen_until=10),
        )
    },
    "A6": {
        "more was skipped": (
            skips_in_ledger(FEED, NINE, [a_range(0, 8)]),
            skips_in_ledger(FEED, NINE, [a_range(0, 7)]),
        ),
        "more offsets": (overlap((0, 5), (4, 9)), overlap((0, 5), (3, 9))),
        "a third range": (overlap((0, 5), (0, 5)), overlap((0, 5), (0, 5), (0, 5))),
        "a third life": ([lives(1)], [lives(1), lives(2)]),
    },
    "A7": {
        "more is missing": (
            [short_read(MANIFEST.plan, a_range(5, 6))],
            [short_read(MANIFEST.plan, a_range(5, 7))],
        )
    },
    "A8": {
        "more was lost": (
            [lost_finding(FEED, an_account(), a_range(0, 4), "A8")],
            [lost_finding(FEED, an_account(), a_range(0, 5), "A8")],
        ),
        "another row is gone": (
            read_in_full(missing=runs((1, 2))),
            read_in_full(missing=runs((1, 2), (3, 4))),
        ),
        "another of many rows is gone": (
            read_in_full(missing=many(500)),
            read_in_full(missing=many(501)),
        ),
        "the rest has changed": (
            read_in_full(missing=runs((1, 2))),
            read_in_full(missing=runs((1, 2)), sums=replace(SUMS, hash_sums=(9, 9))),
        ),
        "another offset has no row": (
            of_rows(read_back_of({0: [(0, 8)]})),
            of_rows(read_back_of({0: [(0, 7)]})),
        ),
        "the rows, then the whole file": (
            read_in_full(missing=runs((0, 9))),
            list(missing_or_changed(MANIFEST, "/d", {})),
        ),
    },
    "A9": {
        "it holds more": (stray(0, 1), stray(9, 1)),
        "it holds something else": (stray(9, 1), stray(9, 2)),
        "it is the only copy of more": (sole(many(500)), sole(many(502))),
        "another feed lands there": (
            landed_inside(FEED, TOPIC, {"/d": "payments"}),
            landed_inside(FEED, TOPIC, {"/d": "refunds"}),
        ),
    },
    "A10": {
        "another commit is unknown": (
            ledger_behind(FEED, TOPIC, {"/d": ()}, {}),
            ledger_behind(FEED, TOPIC, {"/d": (), "/e": ()}, {}),
        )
    },
    "A11": {
        "another record": (
            [unreadable_record(MANIFEST.plan, a_range(5, 6), "long overflow")],
            [unreadable_record(MANIFEST.plan, a_range(6, 7), "long overflow")],
        ),
        "another reason": (
            [unreadable_record(MANIFEST.plan, a_range(5, 6), "long overflow")],
            [unreadable_record(MANIFEST.plan, a_range(5, 6), "checksum")],
        ),
    },
    "B2": {
        "a third place": (landed_at(held("a"), held("b")), landed_at(*map(held, "abc"))),
        "twice within a place": (
            landed_at(held("a"), held("b")),
            landed_at(held("a"), held("b", runs((0, 5)))),
        ),
        "another row of a stray": (beside(runs((0, 5))), beside(runs((0, 6)))),
        "another of many rows of a stray": (beside(many(500)), beside(many(502))),
        "three rows for two": (
            read_in_full(doubled=runs((1, 2))),
            read_in_full(doubled=runs((1, 2)), sums=replace(SUMS, record_count=10)),
        ),
        "another foreign row": (
            read_in_full(foreign=runs((20, 21))),
            read_in_full(foreign=runs((20, 21), (30, 31))),
        ),
        "another offset has two rows": (
            of_rows(read_back_of({0: [(0, 9)]}, {0: [(3, 4)]})),
            of_rows(read_back_of({0: [(0, 9)]}, {0: [(3, 5)]})),
        ),
    },
    "B3": {
        "another one too": (payloads(b"a", b"a"), payloads(b"a", b"a", b"a")),
        "it equals another one": (payloads(b"a", b"b", b"a"), payloads(b"b", b"a", b"a")),
    },
    "C1": {
        "another length": (stored(999, "x:1"), stored(0, "x:1")),
        "another checksum": (stored(999, "x:1"), stored(999, "x:2")),
        "the same length, other bytes": (stored(1_000, "x:1"), stored(1_000, "x:2")),
        "other rows": (read_in_full(), read_in_full(sums=replace(SUMS, hash_sums=(9, 9)))),
        "other rows, then none that can be read": (read_in_full(), read_in_full(is_damaged=True)),
        "other damage": (
            read_in_full(is_damaged=True),
            read_in_full(is_damaged=True, now=StoredFile(1, "x:2")),
        ),
        "the bytes, then the rows": (stored(1, "x:1"), read_in_full()),
        "another row that was not committed": (
            of_rows(read_back_of({0: [(0, 9), (20, 21)]})),
            of_rows(read_back_of({0: [(0, 9), (20, 22)]})),
        ),
    },
    "C2": {"more rows": (aborted((4, 8)), aborted((4, 9)))},
    "C3": {
        "another record differs": (differing(b"a", 3), differing(b"a", 3, 5)),
        "more than are shown": (differing(b"a", 1, 2, 3, 4), differing(b"a", 1, 2, 3, 5)),
        "in another way": (differing(b"a", 3), differing(b"b", 3)),
    },
    "N1": {
        "its beginning has expired": (unread(0), unread(3)),
        "no run came again": (no_run(), no_run(frontier=6)),
    },
    "N2": {"another transaction": (stalled(6), stalled(7))},
    "N3": {
        "left behind later": (waiting(LANDING), waiting(BatchState.COMMITTED)),
        "held, and hangs": (waiting(LANDING), tried()),
        "another attempt hangs": (tried(), tried(holder="run 8")),
        "a manifest of nothing": (manifest(None), manifest(0, "e3")),
        "a manifest of as many other bytes": (manifest(9, "a1"), manifest(9, "b2")),
        "it fails for another reason": (tried(), tried(reason="not permitted.")),
    },
    "W1": {"a shorter retention": (near(1_000), near(500))},
    "Z5": {"another record": (frozen(5), frozen(4))},
    "U1": {
        "another directory": (
            unread_paths(DIRECTORY, FEED, TOPIC, {"/d": "no."}),
            unread_paths(DIRECTORY, FEED, TOPIC, {"/d": "no.", "/e": "no."}),
        ),
        "another stray": (unread_stray("/d/a"), unread_stray("/d/b")),
        "its length is another one": (stored(1_000, None, "no."), stored(999, None, "no.")),
        "more was seen of it": (not_listed(8), not_listed(9)),
    },
}

LOST_MORE, MISSING = of_log(bounds(6, 9)), list(missing_or_changed(MANIFEST, "/d", {}))
AS_COMMITTED = StoredFile(ONE.length_bytes, ONE.checksum)

# By code: what else it says, so that all is told which it may say.
_MORE: Final[Mapping[str, Told]] = {
    "A1": perhaps_landed(LOST_MORE),
    "A6": [left_unread(FEED, NINE, a_range(5, 7))],
    "A8": [*in_doubt(MISSING, ["/s"], ["/e"]), *in_doubt(MISSING, (), ["/e"])],
    "A10": ledger_behind(FEED, TOPIC, {}, {"/bare": ()}),
    "C1": read_in_full(now=AS_COMMITTED),
    "N1": missed_reconcile(FEED, TOPIC, NOON - 72 * HOUR, HOUR, NOON),
    "U1": [
        *(
            could_not_tell(each, FEED, TOPIC, "nobody answers.", what="Kafka", seen_at=NOON)
            for each in (BROKER, STORAGE, SECOND_READER)
        ),
        *(
            found
            for each in (MANIFEST_UNREAD, OTHER_FEED)
            for found in unread_paths(each, FEED, TOPIC, {f"/d/{each.names}": "no permission."})
        ),
        unread_rows(FileRows(MANIFEST.plan, ONE, 0), "no DataNode"),
        unread_rows(FileRows(MANIFEST.plan, ONE, 0), "no permission", ROWS_OF_UNKNOWN_FILE),
    ],
}
TOLD: Final[Mapping[str, Sequence[Finding]]] = {
    code: [
        each
        for told in (*chain.from_iterable(rows.values()), _MORE.get(code, ()))
        for each in told
        if each.code == code
    ]
    for code, rows in WORSE.items()
}
