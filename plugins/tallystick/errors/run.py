"""Errors with which a run ends that was carried out as far as it could be."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.errors.ingestion import IngestionError


class VerificationFailed(IngestionError):
    """What lies in staging is not exactly what was planned: nothing is committed."""

    # Looking at the same files again would find the same: the batch must be landed anew.
    next_step = "Nothing was committed. Run again: the batch is landed anew by another attempt."

    def __init__(self, batch: str, problems: Sequence[str]) -> None:
        super().__init__(batch, tuple(problems))

    def sentence(self) -> str:
        """The batch, and every problem with its exact offsets."""
        batch, problems = self.args
        return f"batch {batch} is not proven: {'; '.join(problems)}."


class RepairRefused(IngestionError):
    """What was asked for can't be repaired so; nothing has changed."""

    next_step = "Look at what is open, and what would be done: ./tallystick repair FEED --dry-run"


class CheckFailed(IngestionError):
    """A run found something wrong, after everything that could be landed has been."""

    next_step = "Each finding above names its next step."

    def __init__(self, feed: str, findings: Sequence[str]) -> None:
        super().__init__(feed, tuple(findings))

    def sentence(self) -> str:
        """The feed and its findings, one sentence each."""
        feed, findings = self.args
        return f"feed {feed}: {len(findings)} finding(s): " + "; ".join(findings) + "."
