"""What every error says: what happened, where, what to do next, and if a retry can help.

Beside it the errors with which a run ends after it has done what it could.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class IngestionError(Exception):
    """Something stopped the story."""

    next_step: ClassVar[str] = "Read the log above this line."
    retry: ClassVar[bool] = False
    blames_batch: bool = True
    """False: the attempt counts as none, since no batch can be the cause."""
    place: tuple[str, ...] = ()
    """What the story knew and the adapter could not know: feed, step, batch, ranges."""

    def describe(self) -> str:
        """Where, as far as the sentence does not say it itself, and what happened."""
        sentence = self.sentence()
        place = ", ".join(part for part in self.place if part not in sentence)
        return f"{place}: {sentence}" if place else sentence

    def sentence(self) -> str:
        """What happened, in the words of the class."""
        return " ".join(str(part) for part in self.args) or (self.__doc__ or "").strip()

    def __str__(self) -> str:
        return f"{self.describe()} {self.next_step}"


class VerificationFailed(IngestionError):
    """What lies in staging is not exactly what was planned: nothing is committed."""

    # Looking at the same files again would find the same: the batch must be landed anew.
    next_step = "Nothing was committed. Run again: another attempt lands the batch anew."

    def __init__(self, batch: str, problems: Sequence[str]) -> None:
        super().__init__(batch, tuple(problems))

    def sentence(self) -> str:
        """The batch, and every problem with its exact offsets."""
        batch, problems = self.args
        return f"batch {batch} is not proven: {'; '.join(problems)}."


class RepairRefused(IngestionError):
    """The repair that was asked for can't be done; nothing has changed."""

    next_step = "See what is open, and what a repair would do: tallystick repair FEED --dry-run"


class RetirementRefused(IngestionError):
    """A feed can't be retired as things stand; nothing has changed."""

    next_step = (
        "See what is open, and what two people may accept: tallystick findings FEED; what is not"
        " over: tallystick batches FEED"
    )

    def __init__(self, feed: str, reason: str) -> None:
        super().__init__(feed, reason)

    def sentence(self) -> str:
        """The feed, and what is left of it."""
        feed, reason = self.args
        return f"feed {feed} is not retired: {reason}."


class CheckFailed(IngestionError):
    """A run found something wrong, after it has landed everything that could be landed."""

    next_step = "See what it is, and what to do: tallystick findings FEED"

    def __init__(self, feed: str, verdict: str, troubles: str, findings: str) -> None:
        super().__init__(feed, verdict, troubles, findings)

    def sentence(self) -> str:
        """The feed, the worst verdict, how many troubles, and the findings' numbers."""
        feed, verdict, troubles, findings = self.args
        return f"feed {feed}: {verdict}, {troubles}{f' ({findings})' if findings else ''}."
