"""Whether a committed file that somebody has moved is moved back: on an operator's word only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.repair.facts import MovedFile, NotMended, NumberedFinding, RepairFacts
from tallystick.domain.rules.a8_committed_file_missing import A8

NOT_MOVED_BACK: Final = (
    "it was not moved back: it lies there no more, or an error says why. Run reconcile."
)
_MOVED: Final = (
    "{path} is this file, by length and checksum. Move it back: hdfs dfs -mv {path} {target}."
    " Or name the number of its finding A8, and it is moved."
)


@dataclass(frozen=True, slots=True)
class MoveBack:
    """A committed file that somebody has moved: it goes where readers are sent."""

    file: CommittedFile
    path: str
    target: str
    finding_id: int


def move_back(
    numbered: NumberedFinding, file: CommittedFile, moved: MovedFile, facts: RepairFacts
) -> MoveBack | NotMended:
    """The step, if the finding that misses the file was named."""
    if facts.is_operators_word and numbered.finding.rule == A8:
        return MoveBack(file, moved.path, moved.target, numbered.finding_id)
    return NotMended(numbered.finding_id, _MOVED.format(path=moved.path, target=moved.target))
