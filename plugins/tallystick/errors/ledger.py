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

    def __init__(self, reason: str) -> None:
        super().__init__(reason)

    def sentence(self) -> str:
        """What the database client said; never the password."""
        return f"the ledger can't be reached: {self.args[0]}."


class LedgerAccessRefused(LedgerError):
    """No session of the ledger can be opened: certificate, key, password, role or name is wrong."""

    next_step = (
        "Nothing changed. Correct connection ledger_default, or the server's certificate and rules"
        " of access (docs/install.md, The ledger's server), then run again."
    )

    def __init__(self, reason: str) -> None:
        super().__init__(reason)

    def sentence(self) -> str:
        """What the database client or the server said; never the password."""
        return f"connection ledger_default was refused: {self.args[0]}."


class LedgerRefused(LedgerError):
    """The ledger's schema or its rights refused a statement."""

    next_step = "Nothing changed. This is a defect or a missing right: report it with this text."

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(statement, reason)

    def sentence(self) -> str:
        """The statement's name and the database's words."""
        statement, reason = self.args
        return f"the ledger refused {statement}: {reason}."


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

    def __init__(self, feed: str, detail: str) -> None:
        super().__init__(feed, detail)

    def sentence(self) -> str:
        """The feed, and the two ranges."""
        feed, detail = self.args
        return f"feed {feed}: a planned range overlaps one in the ledger: {detail}."


class BatchBusy(LedgerError):
    """Another attempt holds this batch and is alive."""

    next_step = "Leave the batch alone. If its owner is dead, the lease runs out by itself."
    retry = True

    def __init__(self, batch: str, owner: str, seconds_left: float) -> None:
        super().__init__(batch, owner, seconds_left)

    def sentence(self) -> str:
        """The batch, who holds it, and for how long at least."""
        batch, owner, seconds_left = self.args
        return f"batch {batch} is held by {owner} for another {seconds_left:.0f} s at least."


class BatchUnknown(LedgerError):
    """No such batch is in the ledger."""

    next_step = "List the batches: tallystick batches FEED"

    def __init__(self, batch: str) -> None:
        super().__init__(batch)

    def sentence(self) -> str:
        """The id that was asked for."""
        return f"batch {self.args[0]} is not in the ledger."


class AttemptFenced(LedgerError):
    """A newer attempt holds this batch."""

    next_step = "Stop. Leave this attempt's staging directory to the next sweep."

    def __init__(self, batch: str, token: int, newest: int) -> None:
        super().__init__(batch, token, newest)

    def sentence(self) -> str:
        """The batch, this attempt's token and the newest one."""
        batch, token, newest = self.args
        return (
            f"batch {batch}: attempt number {newest} has taken over from this one, number {token}"
            " (their fencing tokens)."
        )


class CommitOutcomeUnknown(LedgerError):
    """The connection died at COMMIT: it may have happened, or not."""

    next_step = "Nothing was deleted. Run again: the next run looks up this attempt first."
    retry = True

    def __init__(self, batch: str, attempt: str, reason: str) -> None:
        super().__init__(batch, attempt, reason)

    def sentence(self) -> str:
        """The batch and the attempt whose commit is unknown."""
        batch, attempt, reason = self.args
        return f"batch {batch}: it is unknown if attempt {attempt} committed: {reason}."


class SchemaOutOfDate(LedgerError):
    """The ledger's schema is not the one this code knows."""

    next_step = "Run: tallystick ledger migrate (older schema), or update Tallystick (newer one)."

    def __init__(self, found: int, wanted: int) -> None:
        super().__init__(found, wanted)

    def sentence(self) -> str:
        """Both schema numbers."""
        found, wanted = self.args
        return f"the ledger has schema {found}, this code needs {wanted}."


class EvidenceChanged(LedgerError):
    """A finding's evidence has changed since it was read."""

    next_step = "Nothing was changed. Read it again: tallystick explain FINDING"

    def __init__(self, finding: int, accepted: str, found: str, cause: str) -> None:
        super().__init__(finding, accepted, found, cause)

    def sentence(self) -> str:
        """The finding, both digests, and what is found now."""
        finding, accepted, found, cause = self.args
        return f"the evidence of finding {finding} is {found} by now, not {accepted}: {cause}"


class WaiverRefused(LedgerError):
    """A waiver can't be asked for, approved or withdrawn as things stand."""

    next_step = "Nothing was changed. Look at the finding again: tallystick explain FINDING"

    def __init__(self, finding: int, reason: str) -> None:
        super().__init__(finding, reason)

    def sentence(self) -> str:
        """The finding, and why not."""
        finding, reason = self.args
        return f"finding {finding}: {reason}."


class ReportMissing(LedgerError):
    """No report of the feed is stored for that time."""

    next_step = "Make one now: tallystick reconcile FEED"


class LedgerBehind(LedgerError):
    """HDFS holds batches that this ledger does not know (finding A10).

    They are published; or proven in staging, and their offsets would be called lost.
    """

    next_step = "Nothing was landed. Run: tallystick ledger rebuild FEED (docs/runbook.md, A10)."

    def __init__(self, feed: str, directories: Sequence[str]) -> None:
        super().__init__(feed, tuple(directories))

    def sentence(self) -> str:
        """The feed, how many directories, and the first of them."""
        feed, found = self.args
        if len(found) == 1:
            return f"feed {feed}: HDFS holds 1 batch that the ledger does not know: {found[0]}."
        return (
            f"feed {feed}: HDFS holds {len(found)} batches that the ledger does not know,"
            f" first {found[0]}."
        )
