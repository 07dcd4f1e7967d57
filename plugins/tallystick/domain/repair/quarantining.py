"""Which files are moved out of the readers' directories, and where they are kept.

1. No stray is moved while the ledger is behind: it may be of a batch that the ledger has forgotten.
2. A stray that may be the only copy of its rows is moved only when its finding is named. So is a
   batch's directory without a manifest.
3. What another feed has landed is not this feed's to move.
4. Files of attempts that may hold what the log has lost are given up only when the finding is named
   that they hold up.
5. A finding about rows that a stray holds too ends with the stray.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.paths import QUARANTINE_NAME, directory_of, given_up_at
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.rules.a9_stray_file import OTHER_FEED
from tallystick.domain.rules.a10_ledger_behind import BARE
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState

NOT_MOVED: Final = (
    "nothing was moved: it is gone, or a batch's by now, or an error says why. Run reconcile."
)
BESIDE_STRAY: Final = (
    "the other copy is a stray file: its finding A9 moves it; A10 its directory without manifest. A"
    " directory with a manifest is entered, or left out, by a rebuild."
)
_PERHAPS_FORGOTTEN: Final = (
    "the ledger lacks published batches (A10), and the file may be of one of them, and hold the"
    " only copy of its rows: tallystick ledger rebuild {feed}, then repair."
)
_BY_NUMBER: Final = "It may be the only copy, so it is moved when this finding is named."


@dataclass(frozen=True, slots=True)
class Quarantine:
    """A stray file, or files of attempts that are given up; and where it is kept."""

    path: str
    quarantine: str
    finding_id: int


@dataclass(frozen=True, slots=True)
class BesideStray:
    """A finding about rows that the stray at this path holds too."""

    finding_id: int
    path: str


@dataclass(frozen=True, slots=True)
class EndsWithStray:
    """A finding about rows that a stray holds too: it ends when that stray's finding moves it."""

    finding_id: int
    stray_id: int


def quarantine_stray(stored: StoredFinding, facts: RepairFacts) -> Quarantine | NotMended:
    """The stray of a finding A9."""
    number, found = stored.finding_id, stored.finding
    if facts.is_ledger_behind:
        return NotMended(number, _PERHAPS_FORGOTTEN.format(feed=found.feed))
    if found.name == OTHER_FEED:
        return NotMended(number, found.next_step)
    why = facts.sole_copies.get(found.subject)
    if why and not facts.is_operators_word:
        return NotMended(number, f"{why} {_BY_NUMBER}")
    return _kept(found.subject, stored, facts.roots)


def quarantine_bare(stored: StoredFinding, facts: RepairFacts) -> Quarantine | NotMended:
    """The directory of a finding A10, if it is bare and was named."""
    found = stored.finding
    if found.name == BARE and facts.is_operators_word:
        return _kept(found.subject, stored, facts.roots)
    return NotMended(stored.finding_id, found.next_step)


def give_up_files(
    stored: StoredFinding, held: Iterable[str], facts: RepairFacts
) -> Iterator[Quarantine | NotMended]:
    """The directories of attempts that hold up the loss of a finding."""
    number, found = stored.finding_id, stored.finding
    places = {path: given_up_at(path, found.feed) for path in held}
    if None in places.values() or not facts.is_operators_word:
        yield NotMended(number, found.next_step)
    else:
        yield from (Quarantine(path, str(place), number) for path, place in places.items())


def ending_with_strays(
    beside: Iterable[BesideStray], moved: Collection[Quarantine], facts: RepairFacts
) -> Iterator[EndsWithStray | NotMended]:
    """What ends because its stray is moved, alone or with its directory; the others are left."""
    strays = {each.path: each.finding_id for each in moved}
    for each in beside:
        places = (each.path, directory_of(each.path))
        if place := next((one for one in places if one in strays), None):
            yield EndsWithStray(each.finding_id, strays[place])
        else:
            mover = next((facts.movers[one] for one in places if one in facts.movers), None)
            yield NotMended(each.finding_id, _moved_by(mover) if mover else BESIDE_STRAY)


def _moved_by(mover: StoredFinding) -> str:
    accepted = " is accepted, and" if mover.state is FindingState.WAIVED else ""
    name = f"finding {mover.finding_id} ({mover.finding.code.value})"
    return f"the other copy is a stray file: its {name}{accepted} moves it when it is named."


def _kept(path: str, stored: StoredFinding, roots: Iterable[str]) -> Quarantine | NotMended:
    """Below the innermost root that the file lies in. `roots` are all that the feed ever had."""
    number, feed = stored.finding_id, stored.finding.feed
    holding = [each for each in roots if path.startswith(f"{each}/{feed}/")]
    if not holding:
        return NotMended(number, "it lies below no root of this feed; move it yourself.")
    root = max(holding, key=len)
    inside = path.removeprefix(f"{root}/{feed}/")
    return Quarantine(path, f"{root}/{QUARANTINE_NAME}/{feed}/strays/{number}/{inside}", number)
