"""What is news of a run: neighbouring rows differ in one fact."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.a8_committed_file_missing import OF_LOST
from tallystick.domain.rules.evidence import of_batch
from tallystick.domain.rules.findings import Finding, provisional
from tallystick.domain.rules.run_news import open_beside, told_by_run
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict
from tests.support.builders import BATCH, NOON, a_finding

MINUTE = timedelta(minutes=1)


def stored(finding: Finding, first: int = 0, last: int = 0, number: int = 7) -> StoredFinding:
    """As it was seen first and last, in minutes after noon."""
    return StoredFinding(
        number, finding, NOON + first * MINUTE, NOON + last * MINUTE, FindingState.OPEN
    )


LOST, STALLED = a_finding("A1"), a_finding("N2")


@pytest.mark.parametrize(
    ("recorded", "is_news"),
    [
        pytest.param(stored(LOST), True, id="found when the run began"),
        pytest.param(stored(LOST, -1), False, id="found before"),
        pytest.param(stored(LOST, -1, 1), False, id="found before, and seen again"),
        pytest.param(stored(provisional(LOST)), False, id="provisional"),
        pytest.param(stored(LOST, number=8), False, id="over by now"),
        pytest.param(stored(a_finding("A6")), False, id="found by a reconcile"),
        pytest.param(stored(a_finding("A7", Level.L0)), True, id="short read"),
        pytest.param(stored(a_finding("A8", Level.L2)), False, id="file missing"),
        pytest.param(stored(a_finding("A8", subject=OF_LOST)), True, id="lost by a repair"),
        pytest.param(
            stored(a_finding("C3", Level.L4, evidence=of_batch(BATCH))), True, id="differs"
        ),
        pytest.param(
            stored(a_finding("C3", Level.L4, evidence=of_batch(BatchId("f" * 16)))),
            False,
            id="differs in another run's batch",
        ),
        pytest.param(stored(a_finding("Z5"), -1, 1), True, id="lasts, and seen again"),
        pytest.param(stored(a_finding("Z5"), -1, -1), False, id="lasted, and not seen again"),
        pytest.param(stored(STALLED, -1, 1), False, id="lasts, and is told by what stands"),
    ],
)
def test_what_is_news_of_a_run(recorded: StoredFinding, is_news: bool) -> None:
    told = told_by_run([recorded], [], since=NOON, over={8}, own={BATCH})
    assert told == [recorded.finding] * is_news


def test_what_lasts_is_told_after_the_news_and_once() -> None:
    assert told_by_run([stored(LOST)], [STALLED, LOST], since=NOON, over=()) == [LOST, STALLED]


def test_what_stands_open_beside_is_neither_accepted_nor_told() -> None:
    accepted = replace(stored(LOST), state=FindingState.WAIVED)
    harmless = stored(replace(LOST, verdict=Verdict.WAIVED))
    assert open_beside([], [stored(LOST)]) == [stored(LOST)]
    assert open_beside([LOST], [stored(LOST)]) == []
    assert open_beside([], [accepted, harmless]) == []
