"""From where a cut log is due again, as a table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import EpochEnd
from tallystick.domain.repair.new_generation import claims_anchor, due_again_from, epoch_to_ask
from tests.support.builders import an_account

NEW = an_account(frontier=3, first_offset=3, last_seen_until=9)
LANDED = an_account(frontier=5, anchor_offset=4, last_seen_until=9)
SEEN = replace(LANDED, seen_epoch=7)
WITHOUT_EPOCHS = replace(LANDED, anchor=replace(LANDED.anchor, leader_epoch=None))  # type: ignore[type-var]
HOLES_ALONE = replace(NEW, read_until=5, seen_epoch=7)


@pytest.mark.parametrize(
    ("account", "end", "is_claimed", "due"),
    [
        pytest.param(NEW, None, False, 3, id="nothing was landed"),
        pytest.param(LANDED, None, False, None, id="nobody can tell"),
        pytest.param(LANDED, EpochEnd(2, 0), False, 2, id="cut below the last landed record"),
        pytest.param(LANDED, EpochEnd(4, 0), False, 4, id="cut at it"),
        pytest.param(LANDED, EpochEnd(5, 0), True, 5, id="cut just behind it"),
        # Invariant 1.
        pytest.param(LANDED, EpochEnd(8, 0), True, 5, id="cut beyond the frontier"),
        pytest.param(LANDED, EpochEnd(8, 8), False, None, id="the epoch is forgotten"),
        pytest.param(LANDED, EpochEnd(8, 7), True, 5, id="the record has expired"),
        pytest.param(HOLES_ALONE, EpochEnd(8, 0), False, 3, id="no record was landed"),
    ],
)
def test_from_where_a_cut_log_is_due_again(
    account: GenerationAccount, end: EpochEnd | None, is_claimed: bool, due: int | None
) -> None:
    assert due_again_from(account, end) == due
    assert (end is not None and claims_anchor(account, end)) is is_claimed


@pytest.mark.parametrize(
    ("account", "epoch"),
    [
        (NEW, None),
        (replace(NEW, seen_epoch=7), None),
        (LANDED, 0),
        (SEEN, 0),
        (WITHOUT_EPOCHS, None),
        (replace(WITHOUT_EPOCHS, seen_epoch=7), 7),
        (HOLES_ALONE, 7),
    ],
)
def test_which_epoch_is_asked(account: GenerationAccount, epoch: int | None) -> None:
    assert epoch_to_ask(account) == epoch
