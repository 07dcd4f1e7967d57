"""Gathers what a repair rests on, and has it decided: the ledger, the broker and storage are asked.

Changes nothing. A dry run shows the plan, a repair performs the same one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.taking import may_be_adopted
from tallystick.domain.identities import BatchId, FeedName, Owner
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.repair.deciding import plan_repair
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.repair.landing_again import LATER
from tallystick.domain.repair.plan import RepairPlan
from tallystick.domain.rules.a6_ledger_unsound import A6
from tallystick.domain.rules.a9_stray_file import STRAY
from tallystick.domain.rules.a10_ledger_behind import BARE
from tallystick.domain.rules.b2_landed_twice import is_among_committed
from tallystick.domain.rules.evidence import batch_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import as_read
from tallystick.domain.verdicts import FindingState
from tallystick.errors import EvidenceChanged, FileMissing, RepairRefused, StorageError
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.publishing import CommittedBatch
from tallystick.workflows.planning.looking import LogFacts
from tallystick.workflows.repairing.cut_logs import cut_at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.stray_rows import stray_at
from tallystick.workflows.stored.unexplained import unexplained_paths


def with_all_holders(
    ledger: Ledger,
    feed: FeedName,
    named: Mapping[BatchId, CommittedBatch],
    replaced: Collection[CommittedFile],
) -> dict[BatchId, CommittedBatch]:
    """The named batches, and all that share an offset with them, directly or through others."""
    found, waiting = dict(named), list(named.values())
    while waiting:
        batch = waiting.pop()
        for file in batch.manifest.files:
            if CommittedFile(batch.plan.batch_id, file.name) in replaced:
                continue
            for held in file.slices:
                bounds = (held.partition, held.first_offset, held.last_offset + 1)
                for other in ledger.batches_holding(feed, batch.plan.ordinal, *bounds):
                    holder = None if other in found else ledger.committed_batch(other)
                    if holder:
                        found[other] = holder
                        waiting.append(holder)
    return found


@dataclass(frozen=True, slots=True)
class Decided:
    """The plan, and what it is about."""

    plan: RepairPlan
    evidence: tuple[str, ...]
    """The digests of all the findings that it is about, each once."""


def decided_repair(
    known: LogFacts,
    ledger: Ledger,
    finding_ids: Collection[int],
    owner: Owner | None,
    *,
    digests: Collection[str],
) -> Decided:
    """What can be done now about these findings, all open ones when none is named.

    Raises RepairRefused for a number that no standing finding of the feed has. Where `digests` are
    given, raises EvidenceChanged for a finding whose evidence has none of them. LedgerBehind where
    anything is to be landed.
    """
    services = known.services
    if isinstance(known.behind, StorageError):
        raise known.behind
    _require_known(services, ledger, finding_ids)
    standing = chosen_findings(services, ledger, finding_ids)
    _require_as_read(standing, digests)
    chosen, named, later = _named(services, ledger, standing)
    accounts, snapshot = known.accounts_after, known.seen.snapshot
    # Also what attempts may hold is left to the next run: that settles it.
    changed = {each.batch_id for each in judge_logs(known.accounts, known.seen).cuts}
    batches = {
        batch.plan.batch_id: batch
        for batch_id in sorted(named)
        if (batch := ledger.committed_batch(batch_id))
    }
    replaced = ledger.replacements(services.feed_name)
    all_standing = ledger.findings(services.feed_name)
    if any(_tells_of_overlaps(each.finding) for each in all_standing):
        batches = with_all_holders(ledger, services.feed_name, batches, replaced)
    # Asked before the target is listed: data move from staging to the target, never back.
    in_staging = {each for batch in batches.values() for each in _waiting(services, batch)}
    missing = {each for batch in batches.values() for each in _missing(services, batch.manifest)}
    beside = replace(services, ledger=ledger)
    gone = missing - in_staging - replaced.keys()
    facts = RepairFacts(
        accounts=accounts,
        snapshot=snapshot,
        manifests={batch_id: each.manifest for batch_id, each in batches.items()},
        missing=missing,
        in_staging=in_staging,
        replaced=replaced,
        cut_at=cut_at(services, accounts.generations, snapshot),
        roots=feed_roots(beside),
        is_operators_word=bool(finding_ids),
        is_ledger_behind=known.behind is not None,
        unexplained=unexplained_paths(beside, batches.values(), gone),
        sole_copies=_sole_copies(beside, chosen),
        movers={
            each.finding.subject: each
            for each in all_standing
            if each.finding.name in (STRAY, BARE)
        },
        adoptable=[
            each.plan.batch_id
            for each in accounts.unfinished
            if may_be_adopted(each, owner) and each.plan.batch_id not in changed
        ],
    )
    plan = plan_repair(
        chosen,
        facts,
        most_partitions=services.feed.plan.max_partitions_per_batch,
        most_batches=services.most_batches,
    )
    left = [NotMended(each.finding_id, LATER) for each in later]
    evidence = tuple(dict.fromkeys(each.digest for each in standing))
    if known.behind and plan.needs_whole_ledger:
        raise known.behind
    return Decided(replace(plan, not_mended=(*plan.not_mended, *left)), evidence)


def chosen_findings(
    services: Services, ledger: Ledger, finding_ids: Collection[int]
) -> list[StoredFinding]:
    """The standing findings that were named; all open ones when none was."""
    standing = ledger.findings(services.feed_name)
    if not finding_ids:
        return [each for each in standing if each.state is FindingState.OPEN]
    return [each for each in standing if each.finding_id in set(finding_ids)]


def _require_as_read(chosen: Sequence[StoredFinding], digests: Collection[str]) -> None:
    """Raise EvidenceChanged for what has changed since a person read it."""
    for each in chosen:
        if digests and each.digest not in digests:
            read = as_read(each.digest, digests)
            raise EvidenceChanged(each.finding_id, read, each.digest, each.finding.cause)


def _require_known(services: Services, ledger: Ledger, finding_ids: Collection[int]) -> None:
    for number in sorted(set(finding_ids)):
        known = ledger.finding(number)
        if known is None or known.finding.feed != services.feed_name:
            raise RepairRefused(f"feed {services.feed_name} has no finding {number}.")
        if known.state not in (FindingState.OPEN, FindingState.WAIVED):
            ended = f": {known.closed_by}" if known.closed_by else "."
            raise RepairRefused(f"finding {number} is {known.state.value} already{ended}")


def _named(
    services: Services, ledger: Ledger, chosen: Sequence[StoredFinding]
) -> tuple[list[StoredFinding], set[BatchId], list[StoredFinding]]:
    """The findings that are for this repair, the batches they are about, and those for the next.

    Their manifests are all in memory at once.
    """
    now: list[StoredFinding] = []
    named: set[BatchId] = set()
    later: list[StoredFinding] = []
    for each in chosen:
        about = {*_batches_of(services, ledger, each)}
        if named and about - named and len(named | about) > services.most_batches:
            later.append(each)
        else:
            now.append(each)
            named |= about
    return now, named, later


def _batches_of(services: Services, ledger: Ledger, stored: StoredFinding) -> Sequence[BatchId]:
    """The committed batches that a finding is about: named, or asked for by its offsets."""
    found = stored.finding
    named = batch_in(found.evidence)
    if named:
        return [named]
    interval = (found.generation, found.partition, found.from_offset, found.until_offset)
    # Rows that a stray holds too end with the stray: no committed file is touched for them.
    if not is_among_committed(found) or any(each is None for each in interval):
        return ()
    generation, partition, from_offset, until_offset = (int(each or 0) for each in interval)
    return ledger.batches_holding(
        services.feed_name, generation, partition, from_offset, until_offset
    )


def _tells_of_overlaps(found: Finding) -> bool:
    """True when the ledger itself may have offsets in two batches, which its schema refuses."""
    return found.rule == A6 or is_among_committed(found)


def _sole_copies(services: Services, chosen: Sequence[StoredFinding]) -> dict[str, str]:
    """Strays among what was found that may be the only copy of their rows, each with the reason."""
    found = [each.finding.subject for each in chosen if each.finding.name == STRAY]
    strays = [stray_at(services, path) for path in found]
    return {each.path: each.words for each in strays if each.may_be_only_copy}


def _waiting(services: Services, batch: CommittedBatch) -> Iterator[CommittedFile]:
    """The batch's files that lie in staging, and will be shown to readers by a rename."""
    if batch.state is not BatchState.PUBLISHED:
        there = _names_in(services, StagingPath.of(batch.plan, batch.attempt_id).data)
        yield from (each for each in _files_of(batch.manifest) if each.name in there)


def _missing(services: Services, manifest: Manifest) -> Iterator[CommittedFile]:
    """The batch's files that are not in its directory now."""
    there = _names_in(services, str(BatchPath.of(manifest.plan)))
    yield from (each for each in _files_of(manifest) if each.name not in there)


def _files_of(manifest: Manifest) -> Iterator[CommittedFile]:
    return (CommittedFile(manifest.plan.batch_id, each.name) for each in manifest.files)


def _names_in(services: Services, directory: str) -> set[str]:
    try:
        return {each.name for each in services.store.entries(directory)}
    except FileMissing:
        return set()
