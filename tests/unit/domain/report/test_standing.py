"""What is said of a feed between two reports."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tallystick.domain.finding_codes import Level
from tallystick.domain.report.standing import Heard, LastHeard, verdict_now
from tallystick.domain.verdicts import Verdict

NOW = datetime(2026, 11, 8, 12, tzinfo=UTC)
ANSWERS = {Level.L2: LastHeard(NOW, None)}
SILENT = {Level.L1: LastHeard(NOW, None), Level.L4: LastHeard(None, NOW)}


@pytest.mark.parametrize(
    ("reported", "standing", "now"),
    [
        (None, [], Verdict.UNKNOWN),
        (None, [Verdict.PROVEN_LOSS], Verdict.PROVEN_LOSS),
        (Verdict.PROVEN_OK, [], Verdict.PROVEN_OK),
        (Verdict.BENIGN_HOLE, [], Verdict.BENIGN_HOLE),
        (Verdict.UNKNOWN, [], Verdict.UNKNOWN),
        (Verdict.UNKNOWN, [Verdict.SUSPECTED], Verdict.UNKNOWN),
        (Verdict.PROVEN_LOSS, [], Verdict.PROVEN_OK),
        (Verdict.PROVEN_LOSS, [Verdict.WAIVED], Verdict.WAIVED),
        (Verdict.PROVEN_OK, [Verdict.WAIVED, Verdict.PROVEN_DUP], Verdict.PROVEN_DUP),
    ],
)
def test_what_stands_is_told_and_what_only_a_report_could_say(
    reported: Verdict | None, standing: list[Verdict], now: Verdict
) -> None:
    assert verdict_now(reported, ANSWERS, standing) is now


@pytest.mark.parametrize(
    ("heard", "now"), [(ANSWERS, Verdict.PROVEN_OK), (SILENT, Verdict.UNKNOWN)]
)
def test_a_report_takes_nothing_back_that_somebody_else_could_not_tell(
    heard: Heard, now: Verdict
) -> None:
    assert verdict_now(Verdict.PROVEN_OK, heard, []) is now
    assert verdict_now(Verdict.PROVEN_OK, heard, [Verdict.PROVEN_LOSS]) is Verdict.PROVEN_LOSS
