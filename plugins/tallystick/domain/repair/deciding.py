"""What can be done about findings: one remedy for each way of mending that a rule may have.

Each remedy stands in a module of its own, with its steps and its reasons to leave a finding alone.
Every finding is in the plan exactly once. Decides; performs nothing.

1. Committed rows that are missing or damaged are landed again, file by file, where the broker still
   has them; nothing else is touched.
2. A file that is there is replaced only as a whole. What is missing with its file, and gone from
   the broker too, becomes a loss on record.
3. A stray file is moved out of the readers' directories, and kept. So is a directory without a
   manifest.
4. A manifest that is gone is written anew; a batch that nobody holds is adopted.
5. A record that Spark could not read is asked for again on an operator's word.
6. Files of attempts that hold up a loss are given up only on an operator's word.
7. A new generation of a log that was cut is opened only on an operator's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar, assert_never

from tallystick.domain.identities import GenerationId
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.repair.finishing import Adopt, WriteManifest, adopted, finish
from tallystick.domain.repair.landing_again import HarmedFile, LandAgain, harmed_files, land_again
from tallystick.domain.repair.new_generation import NewGeneration, new_generation
from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.repair.quarantining import (
    BesideStray,
    EndsWithStray,
    Quarantine,
    ending_with_strays,
    give_up_files,
    quarantine_bare,
    quarantine_stray,
)
from tallystick.domain.repair.reading_again import ReadAgain, read_again
from tallystick.domain.rules.evidence import held_in
from tallystick.domain.rules.rule import Mending
from tallystick.domain.rules.stored_finding import StoredFinding

Step = (
    HarmedFile
    | BesideStray
    | Quarantine
    | WriteManifest
    | Adopt
    | ReadAgain
    | NewGeneration
    | LandAgain
    | EndsWithStray
    | NotMended
)
"""What is made of a finding: a file that it names, what is done about it, or why nothing is."""
Kind = TypeVar("Kind", bound=Step)


def plan_repair(
    findings: Sequence[StoredFinding],
    facts: RepairFacts,
    *,
    most_partitions: int,
    most_batches: int,
) -> RepairPlan:
    """What can be done about these findings.

    A batch of the plan holds at most so many partitions, and at most one range of each. Batches
    beyond the most that one repair carries out are left to the next, with their findings.
    """
    steps = [step for each in findings for step in _remedy(each, facts)]
    moved, asked = _of(Quarantine, steps), _of(ReadAgain, steps)
    left_behind = _of(Adopt, steps)
    steps += ending_with_strays(_of(BesideStray, steps), moved, facts)
    steps += land_again(
        _of(HarmedFile, steps), facts, most_partitions=most_partitions, most_batches=most_batches
    )
    landed = _of(LandAgain, steps)
    # Only what keeps the ledger behind is moved while it is: batches wait for that.
    waits = facts.is_ledger_behind and bool(moved)
    room = 0 if waits else most_batches - len(landed) - len(asked)
    return RepairPlan(
        land_again=landed,
        quarantined=moved,
        end_with_strays=_of(EndsWithStray, steps),
        write_manifests=_of(WriteManifest, steps),
        new_generations=_one_of_each_log(_of(NewGeneration, steps)),
        read_again=asked,
        adopt=left_behind,
        adopted=adopted(left_behind, facts, most_batches=room),
        not_mended=_of(NotMended, steps),
    )


def _remedy(stored: StoredFinding, facts: RepairFacts) -> Iterator[Step]:
    """The steps about one finding; or why it is left alone."""
    found = stored.finding
    if held := held_in(found.evidence):
        yield from give_up_files(stored, held, facts)
        return
    match found.rule.mending:
        case Mending.LAND_AGAIN:
            yield from harmed_files(stored, facts)
        case Mending.LAND_AGAIN_IF_NAMED if facts.is_operators_word:
            yield from harmed_files(stored, facts)
        case Mending.QUARANTINE:
            yield quarantine_stray(stored, facts)
        case Mending.QUARANTINE_IF_BARE:
            yield quarantine_bare(stored, facts)
        case Mending.FINISH:
            yield finish(stored, facts)
        case Mending.READ_AGAIN:
            yield read_again(stored, facts)
        case Mending.NEW_GENERATION:
            yield new_generation(stored, facts)
        case Mending.NOTHING | Mending.LAND_AGAIN_IF_NAMED:
            yield NotMended(stored.finding_id, found.rule.why_not_mended or found.next_step)
        case _ as never:
            assert_never(never)


def _one_of_each_log(opened: Sequence[NewGeneration]) -> tuple[NewGeneration, ...]:
    """A log that was cut again has a finding for each cut: it is landed from the lowest one."""
    found: dict[GenerationId, NewGeneration] = {}
    for each in opened:
        known = found.setdefault(each.account.generation_id, each)
        if each.first_offset < known.first_offset:
            found[each.account.generation_id] = each
    return tuple(found.values())


def _of(kind: type[Kind], steps: Iterable[Step]) -> tuple[Kind, ...]:
    return tuple(each for each in steps if isinstance(each, kind))
