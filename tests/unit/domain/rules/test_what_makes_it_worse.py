"""Whatever makes a finding worse makes it another one: no waiver of what was before covers it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.waivers import evidence_digest
from tests.support.told_by_rules import (
    HOUR,
    LANDING,
    WORSE,
    Told,
    frozen,
    near,
    no_run,
    stalled,
    stored,
    tried,
    unread,
    waiting,
)


def accepted_by(findings: Told) -> set[object]:
    """What a waiver of these holds on to."""
    return {(each.key, each.verdict, evidence_digest(each.evidence)) for each in findings}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(*pair, id=f"{code}-{name}")
        for code, rows in WORSE.items()
        for name, pair in rows.items()
    ],
)
def test_what_has_become_worse_is_not_accepted_with_what_was_before(
    before: Told, after: Told
) -> None:
    before, after = list(before), list(after)
    assert before
    assert accepted_by(after) - accepted_by(before)


def test_every_code_is_asked_what_could_make_it_worse() -> None:
    assert sorted(WORSE) == sorted(rule.code.value for rule in RULES)
    for code, rows in WORSE.items():
        for pair in rows.values():
            assert any(each.code.value == code for told in pair for each in told), code


@pytest.mark.parametrize(
    ("now", "later"),
    [
        pytest.param(lambda: no_run(), lambda: no_run(3 * HOUR), id="N1"),
        pytest.param(lambda: near(1_000), lambda: near(1_000, HOUR, until=99), id="W1"),
        pytest.param(lambda: stalled(6), lambda: stalled(6, minutes=30), id="N2"),
        pytest.param(lambda: frozen(5), lambda: frozen(5, until=99), id="Z5"),
        pytest.param(lambda: unread(0), lambda: unread(0, until=99), id="N1"),
        pytest.param(lambda: tried(), lambda: tried(seconds=99 * 3600), id="N3, tried"),
        pytest.param(lambda: waiting(LANDING), lambda: waiting(LANDING, 9 * 3600), id="N3"),
        pytest.param(lambda: stored(9, None, "none."), lambda: stored(9, None, "no."), id="U1"),
    ],
)
def test_time_and_a_growing_log_alone_make_it_no_other_one(
    now: Callable[[], Told], later: Callable[[], Told]
) -> None:
    assert accepted_by(now()) == accepted_by(later())
