"""Z1 to Z3: holes with a proven cause are told with their count and reason, and fail nothing."""

from __future__ import annotations

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.proven_hole import HoleCount
from tallystick.domain.rules.z1_control_marker import control_markers
from tallystick.domain.rules.z2_aborted_record import aborted_records
from tallystick.domain.rules.z3_compacted_record import compacted_records
from tests.support.builders import FEED, TOPIC


def test_holes_are_told_with_their_reason() -> None:
    control = control_markers(FEED, TOPIC, HoleCount(1, 0, HoleClass.CONTROL, 3, 4, 12))
    aborted = aborted_records(FEED, TOPIC, HoleCount(1, 0, HoleClass.ABORTED, 3, 2, 7))
    compacted = compacted_records(FEED, TOPIC, HoleCount(2, 3, HoleClass.COMPACTED, 7, 0, 9))

    assert (control.code.value, control.evidence) == ("Z1", {"count": 3})
    assert control.cause.startswith("3 offset(s) hold no row: each transaction ends")
    assert (aborted.code.value, aborted.from_offset, aborted.until_offset) == ("Z2", 2, 7)
    assert (compacted.code.value, compacted.generation, compacted.partition) == ("Z3", 2, 3)
    assert not {each.verdict for each in (control, aborted, compacted)} & FAILING_VERDICTS
