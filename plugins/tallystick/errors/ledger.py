"""Errors of the ledger: it does not answer, refuses, or knows better than the caller."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.errors.ingestion import IngestionError


class LedgerError(IngestionError):
    """The ledger did not do what was asked."""


class LedgerUnavailable(LedgerError):
    """The ledger's database can't be reached."""

    next_step = "Check the database and connection ledger_default, then run again: nothing is lost."
    retry = True

    said = "the ledger can't be reached: {reason}."
    reason: str


class LedgerAccessRefused(LedgerError):
    """No session of the ledger can be opened: certificate, key, password, role or name is wrong."""

    next_step = (
        "Nothing changed. Correct connection ledger_default, or the server's certificate and rules"
        " of access (docs/install.md, The ledger's server), then run again."
    )

    said = "connection ledger_default was refused: {reason}."
    reason: str


class LedgerRefused(LedgerError):
    """The ledger's schema or its rights refused a statement."""

    next_step = "Nothing changed. This is a defect or a missing right: report it with this text."

    said = "the ledger refused {statement}: {reason}."
    statement: str
    reason: str


class LedgerRightMissing(LedgerRefused):
    """The role of connection ledger_default lacks a right in the ledger."""

    next_step = (
        "Nothing changed. As the ledger's owner run: tallystick ledger migrate --grant-to ROLE"
        " (--grant-read-to ROLE for a role that only reads)."
    )


class ClaimConflict(LedgerError):
    """The schema refused a range that overlaps another one."""

    next_step = "Plan again: another run has claimed these offsets. Nothing was changed."
    retry = True

    said = "feed {feed}: a planned range overlaps one in the ledger: {detail}."
    feed: str
    detail: str


class BatchBusy(LedgerError):
    """Another attempt holds this batch and is alive."""

    next_step = "Leave the batch alone. If its owner is dead, the lease runs out by itself."
    retry = True

    said = "batch {batch} is held by {owner} for another {seconds_left:.0f} s at least."
    batch: str
    owner: str
    seconds_left: float


class BatchUnknown(LedgerError):
    """No such batch is in the ledger."""

    next_step = "List the batches: tallystick batches FEED"

    said = "batch {batch} is not in the ledger."
    batch: str


class AttemptFenced(LedgerError):
    """A newer attempt holds this batch."""

    next_step = "Stop. Leave this attempt's staging directory to the next sweep."

    said = (
        "batch {batch}: attempt number {newest} has taken over from this one, number {token}"
        " (their fencing tokens)."
    )
    batch: str
    token: int
    newest: int


class CommitOutcomeUnknown(LedgerError):
    """The connection died at COMMIT: it may have happened, or not."""

    next_step = "Nothing was deleted. Run again: the next run looks up this attempt first."
    retry = True

    said = "batch {batch}: it is unknown if attempt {attempt} committed: {reason}."
    batch: str
    attempt: str
    reason: str


class SchemaOutOfDate(LedgerError):
    """The ledger's schema is not the one this code knows."""

    next_step = "Run: tallystick ledger migrate (older schema), or update Tallystick (newer one)."

    said = "the ledger has schema {found}, this code needs {wanted}."
    found: int
    wanted: int


class EvidenceChanged(LedgerError):
    """A finding's evidence has changed since it was read."""

    next_step = "Nothing was changed. Read it again: tallystick explain FINDING"

    said = "the evidence of finding {finding} is {found} by now, not {accepted}: {cause}"
    finding: int
    accepted: str
    found: str
    cause: str


class WaiverRefused(LedgerError):
    """A waiver can't be asked for, approved or withdrawn as things stand."""

    next_step = "Nothing was changed. Look at the finding again: tallystick explain FINDING"

    said = "finding {finding}: {reason}."
    finding: int
    reason: str


class ReportMissing(LedgerError):
    """No report of the feed is stored for that time."""

    next_step = "Make one now: tallystick reconcile FEED"

    said = "{reason}"
    reason: str


class LedgerBehind(LedgerError):
    """HDFS holds batches that this ledger does not know (finding A10).

    They are published; or proven in staging, and their offsets would be called lost.
    """

    next_step = "Nothing was landed. Run: tallystick ledger rebuild FEED (docs/runbook.md, A10)."

    feed: str
    directories: Sequence[str]

    def sentence(self) -> str:
        """The feed, how many directories, and the first of them."""
        feed, found = self.feed, self.directories
        if len(found) == 1:
            return f"feed {feed}: HDFS holds 1 batch that the ledger does not know: {found[0]}."
        return (
            f"feed {feed}: HDFS holds {len(found)} batches that the ledger does not know,"
            f" first {found[0]}."
        )
