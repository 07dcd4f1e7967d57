"""From where is a log that was cut due again? Told by the leader's epochs, as `sameness` explains.

1. Never from beyond the frontier: what was not landed behind a gap is due, wherever the cut is.
2. Epochs that say the last landed record is in the log count only where the log holds it.
"""

from __future__ import annotations

from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import EpochEnd


def epoch_to_ask(account: GenerationAccount) -> int | None:
    """The epoch of the last landed record, or the one in which the log was seen.

    None where neither is known, and where nothing was landed: then the cut is no matter.
    """
    if _has_landed_nothing(account):
        return None
    anchored = account.anchor.leader_epoch if account.anchor else None
    return account.seen_epoch if anchored is None else anchored


def claims_anchor(account: GenerationAccount, end: EpochEnd) -> bool:
    """True where the epochs say that the last landed record is in the log: then it can be read."""
    anchor = account.anchor
    return anchor is not None and end.until_offset > max(anchor.offset, end.log_start_offset)


def due_again_from(account: GenerationAccount, end: EpochEnd | None) -> int | None:
    """First offset of a stopped partition's log that is due again; None where nobody can say.

    `end` is where the log leaves `epoch_to_ask`; None where nobody could tell, or where the last
    landed record is another one than the epochs claim.
    """
    if _has_landed_nothing(account):
        return account.frontier
    if end is None or end.until_offset <= end.log_start_offset:
        return None
    return min(end.until_offset, account.frontier)


def _has_landed_nothing(account: GenerationAccount) -> bool:
    return account.read_until is None and account.anchor is None
