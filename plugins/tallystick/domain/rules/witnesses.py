"""What the ledger and the broker say, by all rules that ask them: one function for each.

Pure: everything that a rule rests on comes in, findings come out. Who asks, records and judges is
elsewhere; each rule stands in its own module.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.domain.batches.batch import TriedBatch, WaitingBatch
from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import Observation
from tallystick.domain.rules.a1_expired import unseen_beginning
from tallystick.domain.rules.a6_ledger_unsound import (
    landed_in_two_lives,
    left_unread,
    overlaps_in_ledger,
    skips_in_ledger,
)
from tallystick.domain.rules.a7_short_read import standing_short_reads
from tallystick.domain.rules.a11_unreadable_record import standing_unreadable
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.log_findings import end_findings, lost_finding
from tallystick.domain.rules.n1_overdue import missed_runs, unread_partitions
from tallystick.domain.rules.n2_stalled_stable_offset import stalled_stable_offsets
from tallystick.domain.rules.n3_unfinished_batch import (
    failing_batches,
    held_too_long,
    unfinished_batches,
)
from tallystick.domain.rules.u1_could_not_tell import unheard_partitions
from tallystick.domain.rules.w1_loss_near import losses_near


@dataclass(frozen=True, slots=True)
class Terms:
    """What a feed's file says about how it is judged, and the instant at which it is."""

    isolation: Isolation
    warn_time_to_loss: timedelta
    run_period: timedelta
    """The longest pause between two runs."""
    now: datetime


@dataclass(frozen=True, slots=True)
class LedgerWitness:
    """What the ledger says by itself."""

    recorded: Sequence[Finding]
    """Findings that stand."""
    lost: Sequence[tuple[GenerationAccount, OffsetRange, str]]
    """With the code under which each was recorded."""
    waiting: Sequence[WaitingBatch]
    unsound: Sequence[tuple[GenerationAccount, Sequence[OffsetRange]]]
    """Generations whose settled ranges overlap or leave a gap, with those ranges."""
    left_unread: Sequence[tuple[GenerationAccount, OffsetRange]] = ()
    """What was seen of logs that a rebuild has closed, and is neither committed nor lost."""
    in_two_lives: Sequence[tuple[GenerationAccount, OffsetRange, int]] = ()
    """Offsets that a generation has committed, and an earlier one of the same topic id, by its
    ordinal."""
    open_repairs: Collection[str] = ()
    """Repairs that are neither committed nor given up."""
    claimed: Collection[OffsetRange] = ()
    """What unfinished batches hold."""
    tried: Sequence[TriedBatch] = ()
    """Unfinished batches that were tried."""
    ended: Sequence[tuple[GenerationAccount, str, str]] = ()
    """Logs that are stopped or ended with their topic, with the code and the reason."""
    begun_unseen: Sequence[GenerationAccount] = ()
    longest_application: timedelta = timedelta(days=365)
    """An attempt that takes much longer hangs."""


def lasting_findings(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    seen: Observation,
    outlook: Outlook,
    terms: Terms,
) -> tuple[Finding, ...]:
    """What the broker shows that a run is to fail on, whoever saw it first."""
    return (
        *unheard_partitions(feed, generations, seen.snapshot),
        *stalled_stable_offsets(
            feed, generations, seen.snapshot, outlook, isolation=terms.isolation, now=terms.now
        ),
        *losses_near(
            feed,
            generations,
            seen.snapshot,
            outlook,
            now=terms.now,
            warn=terms.warn_time_to_loss,
            run_period=terms.run_period,
        ),
    )


def broker_findings(
    feed: str,
    generations: Mapping[int, GenerationAccount],
    seen: Observation,
    outlook: Outlook,
    terms: Terms,
) -> tuple[Finding, ...]:
    """What the broker shows, but for what any look records with itself."""
    return (
        *lasting_findings(feed, generations, seen, outlook, terms),
        *unread_partitions(feed, generations, seen.snapshot),
        *missed_runs(
            feed,
            generations,
            seen.snapshot,
            isolation=terms.isolation,
            idle=outlook.idle,
            run_period=terms.run_period,
        ),
    )


def ledger_findings(
    feed: str, topic: str, generations: Mapping[int, GenerationAccount], facts: LedgerWitness
) -> tuple[Finding, ...]:
    """What the ledger says by itself: as it was stated first, where a state lasts."""
    known = {each.key: each for each in facts.recorded}
    lost = [lost_finding(feed, account, offsets, code) for account, offsets, code in facts.lost]
    return (
        *end_findings(feed, facts.ended, facts.recorded),
        *(unseen_beginning(feed, each) for each in facts.begun_unseen),
        *standing_short_reads(generations, facts.recorded, facts.open_repairs),
        *standing_unreadable(generations, facts.recorded, facts.claimed),
        # With the evidence of then: the ranges have none.
        *(known.get(each.key, each) for each in lost),
        *(
            finding
            for account, settled in facts.unsound
            for finding in (
                *overlaps_in_ledger(feed, account, settled),
                *skips_in_ledger(feed, account, settled),
            )
        ),
        *(left_unread(feed, *each) for each in facts.left_unread),
        *(landed_in_two_lives(feed, *each) for each in facts.in_two_lives),
        # With the refusal, where one was told.
        *(known.get(each.key, each) for each in unfinished_batches(feed, topic, facts.waiting)),
        *held_too_long(feed, topic, facts.tried, facts.longest_application),
        *failing_batches(feed, topic, facts.tried),
    )
