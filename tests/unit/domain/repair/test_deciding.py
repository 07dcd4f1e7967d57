"""What a repair does about a finding, fact by fact: neighbours differ in one of them.

The ids begin with the number of the rule of `deciding`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.repair.finishing import Adopt, WriteManifest
from tallystick.domain.repair.new_generation import NewGeneration
from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.repair.quarantining import Quarantine
from tallystick.domain.repair.reading_again import ReadAgain
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tests.support.builders import BATCH, a_status, planned
from tests.support.repair_facts import (
    ACCOUNT,
    BARE,
    BESIDE,
    CHANGED,
    CUT,
    DIFFERS,
    FIRST,
    HELD,
    MANIFEST_GONE,
    MISSING,
    NAMED,
    NOT_FINISHED,
    NOT_READ,
    OF_ROWS,
    PATH,
    REPAIR,
    ROOT,
    SECOND,
    SILENT,
    STOPPED,
    STRAY,
    UNREADABLE,
    accounts,
    found,
    landed_again,
    log,
    plan,
)

INNER = f"{ROOT}/orders/inner"


def quarantined(path: str, root: str = ROOT) -> RepairPlan:
    inside = path.removeprefix(f"{root}/orders/")
    return RepairPlan(
        quarantined=(Quarantine(path, f"{root}/_quarantine/orders/strays/1/{inside}", 1),)
    )


@pytest.mark.parametrize(
    ("finding", "changes", "expected"),
    [
        pytest.param(MISSING, NAMED, landed_again(0, 5), id="1 missing, in the log, and named"),
        pytest.param(CHANGED, {"missing": ()}, landed_again(0, 5), id="1 changed, and in the log"),
        pytest.param(SILENT, NAMED, landed_again(0, 5), id="1 unreadable, and named"),
        pytest.param(DIFFERS, {}, landed_again(5, 10, file=SECOND), id="1 differs: its holes, too"),
        pytest.param(OF_ROWS, {"missing": ()}, landed_again(0, 5), id="1 found by its offsets"),
        pytest.param(
            MISSING, log(3, 20) | NAMED, landed_again(3, 5, (0, 3)), id="2 missing, half expired"
        ),
        pytest.param(
            MISSING, log(9, 20) | NAMED, landed_again(0, 0, (0, 5)), id="2 named, expired"
        ),
        pytest.param(
            MISSING,
            log(0, 20, topic_id="another") | NAMED,
            landed_again(0, 0, (0, 5)),
            id="2 named, and its topic is over",
        ),
        pytest.param(STRAY, {}, quarantined(PATH), id="3 a stray"),
        pytest.param(
            STRAY, NAMED | {"sole_copies": {PATH: "."}}, quarantined(PATH), id="3 sole, named"
        ),
        pytest.param(
            replace(STRAY, subject=f"{INNER}/orders/copy.parquet"),
            {"roots": [ROOT, INNER]},
            quarantined(f"{INNER}/orders/copy.parquet", INNER),
            id="3 below the innermost root",
        ),
        pytest.param(BARE, NAMED, quarantined(PATH), id="3 a bare directory, named"),
        pytest.param(
            MANIFEST_GONE,
            {},
            RepairPlan(write_manifests=(WriteManifest("/data/_tally.json", 1),)),
            id="4 a manifest is gone",
        ),
        pytest.param(
            NOT_FINISHED, {}, RepairPlan(adopt=(Adopt(BATCH, 1),)), id="4 a batch is not finished"
        ),
        pytest.param(
            NOT_READ,
            accounts(UNREADABLE) | NAMED,
            RepairPlan(read_again=(ReadAgain(UNREADABLE, planned(12, 13), 1),)),
            id="5 named",
        ),
        pytest.param(
            MISSING,
            {"unexplained": [PATH]} | NAMED,
            landed_again(0, 5),
            id="2 something is unexplained, all is in the log, and named",
        ),
        pytest.param(
            CUT,
            accounts(STOPPED) | log(2, 8) | NAMED,
            RepairPlan(new_generations=(NewGeneration(STOPPED, 2, 2, 1),)),
            id="7 named: from the log start, where nobody knows better",
        ),
        pytest.param(
            CUT,
            accounts(STOPPED) | log(2, 8) | NAMED | {"cut_at": {0: 6}},
            RepairPlan(new_generations=(NewGeneration(STOPPED, 6, 2, 1),)),
            id="7 named: from where it was cut",
        ),
        pytest.param(
            replace(CUT, from_offset=5),
            accounts(STOPPED) | log(2, 8) | NAMED | {"cut_at": {0: 6}},
            RepairPlan(new_generations=(NewGeneration(STOPPED, 5, 2, 1),)),
            id="7 named: from where the finding tells of",
        ),
        pytest.param(
            CUT,
            accounts(STOPPED) | log(2, 4) | NAMED | {"cut_at": {0: 6}},
            RepairPlan(new_generations=(NewGeneration(STOPPED, 4, 2, 1),)),
            id="7 named: never beyond the log's end",
        ),
        pytest.param(
            replace(CUT, from_offset=11),
            accounts(STOPPED) | log(12, 15) | NAMED,
            RepairPlan(new_generations=(NewGeneration(STOPPED, 10, 12, 1),)),
            id="7 named: never beyond the frontier",
        ),
    ],
)
def test_it_is_mended(finding: Finding, changes: dict[str, Any], expected: RepairPlan) -> None:
    assert plan(finding, **changes) == expected


@pytest.mark.parametrize(
    ("finding", "changes", "reason"),
    [
        pytest.param(SILENT, {}, "Do as the runbook says.", id="1 unreadable, not named"),
        pytest.param(MISSING, {}, "moved or deleted", id="1 missing, in the log, not named"),
        pytest.param(CHANGED, {}, "moved or deleted", id="1 changed, then missing, not named"),
        pytest.param(OF_ROWS, {}, "moved or deleted", id="1 found by its offsets, and missing"),
        pytest.param(MISSING, log(3, 20), "moved or deleted", id="2 half expired, not named"),
        pytest.param(MISSING, {"replaced": {FIRST}}, "is replaced already", id="1 replaced"),
        pytest.param(
            OF_ROWS, {"replaced": {FIRST}}, "Do as the runbook says.", id="1 its file is replaced"
        ),
        pytest.param(MISSING, {"in_staging": {FIRST}}, "not published yet", id="1 in staging"),
        pytest.param(MISSING, accounts(ACCOUNT, REPAIR), "lands these offsets", id="1 in hand"),
        pytest.param(MISSING, {"manifests": {}}, "Do as the runbook says.", id="1 nobody's file"),
        pytest.param(MISSING, log(), "has no leader", id="1 no leader"),
        pytest.param(MISSING, log(0, 4), "ends at 4, within the file", id="1 the log is shorter"),
        pytest.param(MISSING, accounts(STOPPED), "is stopped", id="1 stopped"),
        pytest.param(
            MISSING,
            accounts(replace(ACCOUNT, ordinal=2)),
            "generation 1 of orders-0 is closed",
            id="1 another generation",
        ),
        pytest.param(
            CHANGED,
            log(3, 20) | {"missing": ()},
            "a part of these offsets only",
            id="2 changed, half expired",
        ),
        pytest.param(
            CHANGED,
            log(9, 20) | NAMED | {"missing": ()},
            "none of these offsets any more, and the file",
            id="2 changed, expired, even if named",
        ),
        pytest.param(MISSING, log(9, 20), "name this finding", id="2 missing, expired, not named"),
        pytest.param(STRAY, {"is_ledger_behind": True}, "ledger rebuild orders", id="3 A10"),
        pytest.param(
            STRAY, {"sole_copies": {PATH: "Sole."}}, "Sole. It may be", id="3 sole, not named"
        ),
        pytest.param(STRAY, {"roots": ["/other"]}, "below no root of this feed", id="3 no root"),
        pytest.param(
            replace(STRAY, name="another feed's"),
            NAMED,
            "Do as the runbook says.",
            id="3 another feed's, even if named",
        ),
        pytest.param(BARE, {}, "Do as the runbook says.", id="3 a bare directory, not named"),
        pytest.param(
            replace(BARE, name="unknown batch"),
            NAMED,
            "Do as the runbook says.",
            id="3 a directory with its manifest, even if named",
        ),
        pytest.param(
            BESIDE, {}, "the other copy is a stray file", id="3 rows of a stray that stays"
        ),
        pytest.param(
            replace(OF_ROWS, evidence={"path": PATH, "kept_batch": BATCH}),
            {},
            "Do as the runbook says.",
            id="3 rows of a batch that is kept",
        ),
        pytest.param(NOT_READ, accounts(UNREADABLE), "when you name it", id="5 not named"),
        pytest.param(NOT_READ, NAMED, "landed or given up since", id="5 named, and not unreadable"),
        pytest.param(
            NOT_READ,
            accounts(UNREADABLE, a_status(planned(12, 13))) | NAMED,
            "a batch is trying it",
            id="5 named, and in hand",
        ),
        pytest.param(
            NOT_READ,
            accounts(UNREADABLE) | log(13, 20) | NAMED,
            "the log has deleted it",
            id="5 named, and expired",
        ),
        pytest.param(
            NOT_READ, accounts(UNREADABLE) | log() | NAMED, "can't be read now", id="5 no leader"
        ),
        pytest.param(
            NOT_READ,
            accounts(UNREADABLE) | log(0, 20, topic_id="another") | NAMED,
            "can't be read now",
            id="5 named, and its topic is over",
        ),
        pytest.param(
            NOT_READ,
            accounts(replace(UNREADABLE, state=GenerationState.STOPPED)) | NAMED,
            "was cut",
            id="5 named, and stopped",
        ),
        pytest.param(
            NOT_READ,
            accounts(replace(UNREADABLE, ordinal=2)) | NAMED,
            "is closed",
            id="5 named, and of another generation",
        ),
        pytest.param(
            MISSING,
            {"unexplained": [PATH]} | log(3, 20),
            f"{PATH} is unexplained or unread, and may hold rows of this file",
            id="2 something is unexplained, half expired",
        ),
        pytest.param(
            MISSING,
            {"unexplained": [PATH]} | log(9, 20) | NAMED,
            f"Look at {PATH} first.",
            id="2 something is unexplained, expired, even if named",
        ),
        pytest.param(HELD, {}, "Do as the runbook says.", id="6 files held, not named"),
        pytest.param(
            replace(HELD, evidence={"held_in": {f"{ROOT}/_staging": "no answer."}}),
            NAMED,
            "Do as the runbook says.",
            id="6 all of staging, even if named",
        ),
        pytest.param(
            found(FindingCode.EXPIRED), NAMED, "can be had nowhere", id="6 no files are held"
        ),
        pytest.param(CUT, accounts(STOPPED), "on your word only", id="7 not named"),
        pytest.param(CUT, NAMED, "has not stopped", id="7 named, and open"),
        pytest.param(
            CUT, accounts(STOPPED) | log() | NAMED, "says nothing of it", id="7 no leader"
        ),
        pytest.param(
            CUT,
            accounts(STOPPED) | log(0, 20, topic_id="another") | NAMED,
            "was re-created since",
            id="7 named, and re-created",
        ),
        pytest.param(
            CUT,
            accounts(replace(STOPPED, ordinal=2)) | NAMED,
            "is closed already",
            id="7 named, and of another generation",
        ),
        pytest.param(
            replace(CUT, verdict=Verdict.UNKNOWN),
            accounts(STOPPED) | NAMED,
            "Do as the runbook says.",
            id="7 named, and not proven",
        ),
    ],
)
def test_it_is_left_alone(finding: Finding, changes: dict[str, Any], reason: str) -> None:
    found = plan(finding, **changes)
    assert found == RepairPlan(not_mended=tuple(found.not_mended))
    [left] = found.not_mended
    assert left.finding_id == 1
    assert reason in left.reason
