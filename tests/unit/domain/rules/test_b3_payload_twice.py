"""B3, payload twice: which payloads were sent before, as a table."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.domain.rows.payload import Payload
from tallystick.domain.rules.b3_payload_twice import payloads_twice
from tallystick.domain.rules.findings import Finding, Place
from tallystick.domain.verdicts import Verdict

PLACE = Place(feed="orders", topic="orders", generation=1, partition=0)
Pairs = list[tuple[int, int]]


def intervals(findings: tuple[Finding, ...]) -> Pairs:
    return [(each.from_offset or 0, each.until_offset or 0) for each in findings]


def sent(*rows: tuple[int, str, int]) -> list[Payload]:
    """Offset, content, and the second in which it was sent."""
    return [Payload(offset, second * 1000, content.encode()) for offset, content, second in rows]


PAYLOADS: list[tuple[str, list[Payload], Pairs]] = [
    ("all differ: no two are equal", sent((0, "a", 0), (1, "b", 0)), []),
    ("the same at once: the later one is named", sent((0, "a", 0), (1, "a", 0)), [(1, 2)]),
    ("at the horizon: the bound is included", sent((0, "a", 0), (1, "a", 60)), [(1, 2)]),
    ("past the horizon: a heartbeat is slower", sent((0, "a", 0), (1, "a", 61)), []),
    ("times run backwards: producers' clocks differ", sent((0, "a", 60), (1, "a", 0)), [(1, 2)]),
    (
        "a retried batch: offsets side by side are one run",
        sent((0, "a", 0), (1, "b", 0), (2, "a", 1), (3, "b", 1), (4, "c", 1)),
        [(2, 4)],
    ),
    (
        "a slow chain: each has one shortly before it",
        sent((0, "a", 0), (1, "a", 50), (2, "a", 100)),
        [(1, 3)],
    ),
    (
        "again after a pause: the pause was longer than the horizon",
        sent((0, "a", 0), (1, "a", 100), (2, "a", 130)),
        [(2, 3)],
    ),
]


@pytest.mark.parametrize(
    ("payloads", "expected"), [pytest.param(*rest, id=name) for name, *rest in PAYLOADS]
)
def test_which_payloads_are_there_twice(payloads: list[Payload], expected: Pairs) -> None:
    found = payloads_twice(PLACE, payloads, timedelta(seconds=60))

    assert intervals(found) == expected
    assert {each.verdict for each in found} <= {Verdict.SUSPECTED}


def test_a_repeated_payload_names_its_first_pair() -> None:
    rows = sent((3, "a", 0), (5, "b", 0), (8, "a", 1), (9, "b", 1))
    (found,) = payloads_twice(PLACE, rows, timedelta(seconds=60))

    assert found.evidence["first"] == [3, 8]
    assert "offset 3 equals offset 8" in found.cause
