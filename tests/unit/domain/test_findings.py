"""A finding says in one line where, what and what next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.findings import FAILING_VERDICTS, Finding, FindingCode, Level
from tallystick.domain.states import Verdict

LOST = Finding(
    code=FindingCode.EXPIRED,
    verdict=Verdict.PROVEN_LOSS,
    level=Level.L1,
    feed="orders",
    topic="orders",
    generation=1,
    partition=3,
    from_offset=5,
    until_offset=8,
    cause="gone.",
    next_step="Tell the producers.",
)


@pytest.mark.parametrize(
    ("finding", "place"),
    [
        pytest.param(LOST, "orders-3 [5, 8)", id="an interval"),
        pytest.param(replace(LOST, until_offset=None), "orders-3", id="half an interval is none"),
        pytest.param(replace(LOST, from_offset=None), "orders-3", id="nor the other half"),
        pytest.param(
            replace(LOST, partition=None, from_offset=None, until_offset=None),
            "orders",
            id="a whole topic",
        ),
    ],
)
def test_a_finding_reads_as_one_line(finding: Finding, place: str) -> None:
    assert str(finding) == f"{place} A1 PROVEN_LOSS: gone. Tell the producers."


def test_codes_are_used_once() -> None:
    assert len({code.value for code in FindingCode}) == len(list(FindingCode))


def test_a_run_fails_for_what_is_lost_doubled_or_unknown() -> None:
    assert {Verdict.PROVEN_LOSS, Verdict.PROVEN_DUP, Verdict.UNKNOWN} == FAILING_VERDICTS
