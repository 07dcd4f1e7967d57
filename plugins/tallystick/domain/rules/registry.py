"""Every rule of reconciliation, by its code; complete, or the import fails.

`python -m tests.support.rule_tables` writes the table to docs/reports.md; tests bring each rule to
say all that it may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.rules.a1_expired import A1
from tallystick.domain.rules.a3_log_cut import A3
from tallystick.domain.rules.a5_topic_recreated import A5
from tallystick.domain.rules.a6_ledger_unsound import A6
from tallystick.domain.rules.a7_short_read import A7
from tallystick.domain.rules.a8_committed_file_missing import A8
from tallystick.domain.rules.a9_stray_file import A9
from tallystick.domain.rules.a10_ledger_behind import A10
from tallystick.domain.rules.a11_unreadable_record import A11
from tallystick.domain.rules.b2_landed_twice import B2
from tallystick.domain.rules.b3_payload_twice import B3
from tallystick.domain.rules.c1_content_changed import C1
from tallystick.domain.rules.c2_aborted_landed import C2
from tallystick.domain.rules.c3_rows_differ import C3
from tallystick.domain.rules.n1_overdue import N1
from tallystick.domain.rules.n2_stalled_stable_offset import N2
from tallystick.domain.rules.n3_unfinished_batch import N3
from tallystick.domain.rules.rule import Rule, Trait
from tallystick.domain.rules.u1_could_not_tell import U1
from tallystick.domain.rules.w1_loss_near import W1
from tallystick.domain.rules.z5_no_progress import Z5

RULES: Final[tuple[Rule, ...]] = (
    A1,
    A3,
    A5,
    A6,
    A7,
    A8,
    A9,
    A10,
    A11,
    B2,
    B3,
    C1,
    C2,
    C3,
    N1,
    N2,
    N3,
    W1,
    Z5,
    U1,
)
RULE_OF: Final[Mapping[FindingCode, Rule]] = {rule.code: rule for rule in RULES}
if list(RULE_OF) != list(FindingCode):
    raise TypeError("every code has one rule, in the order of the codes")


def codes_with(trait: Trait) -> list[str]:
    """The codes of the rules that have this trait, for who asks the ledger about their findings."""
    return [rule.code.value for rule in RULES if rule.has(trait)]
