"""A feed of one partition with two damaged files, and findings about it, for repairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.manifest import AccountedRange
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.repair.deciding import plan_repair
from tallystick.domain.repair.facts import RepairFacts
from tallystick.domain.repair.landing_again import LandAgain
from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.rules.findings import Finding
from tests.support.builders import (
    BATCH,
    a_batch,
    a_file,
    a_finding,
    a_manifest,
    a_range,
    a_snapshot,
    a_status,
    a_stored,
    an_account,
    bounds,
    planned,
)

ROOT = "/data/landing"
FIRST, SECOND = CommittedFile(BATCH, "first"), CommittedFile(BATCH, "second")
# Rows 0 to 4 in one file, 5 to 8 in the other, which answers for the marker at 9 as well.
MANIFEST = a_manifest(
    AccountedRange(planned(0, 10), 9, {HoleClass.CONTROL: OffsetRuns.of([(9, 10)])}),
    files=(a_file("first", FileSlice(0, 0, 4, 5)), a_file("second", FileSlice(0, 5, 8, 4))),
)
ACCOUNT = an_account(frontier=10)
STOPPED = replace(ACCOUNT, state=GenerationState.STOPPED)
UNREADABLE = replace(an_account(frontier=10, beyond=[(12, 13)]), unreadable=(a_range(12, 13),))
FACTS = RepairFacts(
    accounts=Accounts({0: ACCOUNT}, []),
    snapshot=a_snapshot({0: bounds(0, 20)}),
    manifests={BATCH: MANIFEST},
    missing={FIRST},
    in_staging=(),
    replaced=(),
    cut_at={},
    roots=[ROOT],
    is_operators_word=False,
    is_ledger_behind=False,
)
NAMED: Mapping[str, Any] = {"is_operators_word": True}


def found(code: FindingCode, name: str = "", **evidence: object) -> Finding:
    """A finding about partition 0, or about what its evidence names."""
    subject = str(evidence.get("path", ""))
    known = a_finding(code, name=name, evidence=evidence, subject=subject)
    return replace(known, from_offset=None, until_offset=None, next_step="Do as the runbook says.")


def of_file(code: FindingCode, file: CommittedFile = FIRST) -> Finding:
    """A finding that names a committed file."""
    return found(code, batch=file.batch_id, file=file.name)


def accounts(account: object, *unfinished: Any) -> dict[str, Any]:
    """The fact of what the ledger knows of partition 0."""
    return {"accounts": Accounts({0: account}, unfinished)}  # type: ignore[dict-item]


def log(*ends: int, **identity: str) -> dict[str, Any]:
    """The fact of what the broker says of partition 0; without ends it has no leader."""
    return {"snapshot": a_snapshot({0: bounds(*ends)} if ends else {}, **identity)}  # type: ignore[misc]


def landed_again(
    from_offset: int, until_offset: int, *gone: tuple[int, int], file: CommittedFile = FIRST
) -> RepairPlan:
    """The file is landed again as far as the range goes, and the rest is gone."""
    ranges = (planned(from_offset, until_offset),) if from_offset < until_offset else ()
    lost = tuple(a_range(*each) for each in gone)
    return RepairPlan(land_again=(LandAgain(MANIFEST.plan, ranges, (file,), (1,), lost),))


def plan(
    *findings: Finding, most_partitions: int = 8, most_batches: int = 8, **changes: Any
) -> RepairPlan:
    """The plan about these findings, which are numbered from 1."""
    stored = [a_stored(each, number) for number, each in enumerate(findings, start=1)]
    return plan_repair(
        stored,
        replace(FACTS, **changes),
        most_partitions=most_partitions,
        most_batches=most_batches,
    )


MISSING = of_file(FindingCode.COMMITTED_FILE_MISSING)
CHANGED = of_file(FindingCode.CONTENT_CHANGED)
DIFFERS = of_file(FindingCode.ROWS_DIFFER, SECOND)
SILENT = of_file(FindingCode.COULD_NOT_TELL)
PATH = f"{ROOT}/orders/dt=2026-11-01/copy.parquet"
STRAY = found(FindingCode.STRAY_FILE, path=PATH)
BARE = found(FindingCode.LEDGER_BEHIND, "no manifest", path=PATH)
MANIFEST_GONE = replace(
    found(FindingCode.UNFINISHED_BATCH, "manifest lost", batch=BATCH), subject="/data/_tally.json"
)
NOT_FINISHED = found(FindingCode.UNFINISHED_BATCH, batch=BATCH)
NOT_READ = replace(found(FindingCode.UNREADABLE_RECORD), from_offset=12, until_offset=13)
CUT = found(FindingCode.LOG_CUT)
STAGED = f"{ROOT}/_staging/b1/a1"
HELD = found(FindingCode.EXPIRED, held_in={STAGED: "no answer."})
BESIDE = found(FindingCode.LANDED_TWICE, path=PATH)
OF_ROWS = replace(found(FindingCode.LANDED_TWICE), from_offset=3, until_offset=4)

REPAIR = replace(a_status(planned(0, 5)), plan=replace(a_batch(), replaces=(FIRST,)))
