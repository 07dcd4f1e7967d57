"""What a repair rests on: the findings, and what the ledger, the broker and storage say now.

Decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.rules.stored_finding import StoredFinding


@dataclass(frozen=True, slots=True)
class NotMended:
    """A finding about which nothing is done here, and why."""

    finding_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class RepairFacts:
    """All that the decision rests on."""

    accounts: Accounts
    snapshot: BrokerSnapshot
    manifests: Mapping[BatchId, Manifest]
    """Of the batches that the findings name."""
    missing: Collection[CommittedFile]
    """Files of these batches that are not in their directory now; a finding says so of then."""
    in_staging: Collection[CommittedFile]
    """Files of committed batches that still wait for their rename."""
    replaced: Collection[CommittedFile]
    cut_at: Mapping[int, int]
    """By stopped partition, where known: all below is landed and in the log as it was landed."""
    roots: Collection[str]
    """Below which the feed has, or had, its directories."""
    is_operators_word: bool
    """True when the findings were named: a new generation may be opened, a file given up."""
    is_ledger_behind: bool
    """True while the ledger lacks published batches: what it calls a stray may be of one."""
    unexplained: Sequence[str] = ()
    """What may hold rows of the missing files: paths that are unexplained or unread."""
    sole_copies: Mapping[str, str] = field(default_factory=dict)
    """By path: why a stray may be the only copy of its rows."""
    movers: Mapping[str, StoredFinding] = field(default_factory=dict)
    """By path: standing findings that move what lies there."""
    adoptable: Collection[BatchId] = ()
    """Unfinished batches that nobody holds, and that the log has still as they were claimed."""
