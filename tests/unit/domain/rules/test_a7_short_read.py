"""A7: a short read stands until its offsets are accounted for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.rules.a7_short_read import short_read, standing_short_reads
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.verdicts import Verdict
from tests.support.builders import BATCH, a_batch, a_range, an_account, by_partition, planned

SHORT = short_read(a_batch(planned(5, 9)), a_range(5, 8))
EXPIRED = replace(SHORT, rule=RULE_OF[FindingCode.EXPIRED], name="", level=Level.L1)


def test_a_short_read_is_not_lost_yet() -> None:
    assert (SHORT.code, SHORT.verdict, SHORT.level) == (
        FindingCode.SHORT_READ,
        Verdict.UNKNOWN,
        Level.L0,
    )
    assert SHORT.evidence == {"batch": BATCH}


@pytest.mark.parametrize(
    ("recorded", "frontier", "ordinal", "stands"),
    [
        pytest.param(SHORT, 5, 1, True, id="nothing has changed"),
        pytest.param(SHORT, 7, 1, True, id="landed in part"),
        pytest.param(SHORT, 8, 1, False, id="landed since"),
        pytest.param(SHORT, 5, 2, False, id="the log is another one"),
        pytest.param(replace(SHORT, partition=1), 5, 1, False, id="nobody knows the partition"),
        pytest.param(
            replace(SHORT, rule=RULE_OF[FindingCode.EXPIRED], name="", level=Level.L1),
            5,
            1,
            False,
            id="another code",
        ),
    ],
)
def test_a_short_read_stands_until_its_offsets_are_accounted_for(
    recorded: Finding, frontier: int, ordinal: int, stands: bool
) -> None:
    account = an_account(frontier=frontier, ordinal=ordinal)

    assert bool(standing_short_reads(by_partition(account), [recorded], ())) is stands


def test_only_short_reads_are_over_by_being_landed() -> None:
    landed = by_partition(an_account(frontier=9))

    nowhere = replace(SHORT, partition=None)
    assert standing_short_reads(landed, [SHORT, EXPIRED, nowhere], ()) == (nowhere,)


def test_a_short_read_of_a_repair_is_over_with_the_repair() -> None:
    """Its offsets lie below the frontier from the first."""
    for account in (an_account(frontier=9), an_account(frontier=9, ordinal=2)):
        assert standing_short_reads(by_partition(account), [SHORT], {BATCH}) == (SHORT,)
        assert standing_short_reads(by_partition(account), [SHORT], {"another"}) == ()
