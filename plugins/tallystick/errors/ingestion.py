"""What every error says: what happened, where, what to do next, and if a retry can help.

Beside it the errors with which a run ends after it has done what it could.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, dataclass_transform


@dataclass_transform(eq_default=False, field_specifiers=(field,))
@dataclass(eq=False, repr=False)
class IngestionError(Exception):
    """Something stopped the story."""

    said: ClassVar[str] = ""
    """What happened, over the fields; an error without says its docstring."""
    next_step: ClassVar[str] = "Read the log above this line."
    retry: ClassVar[bool] = False
    blames_batch = True
    """False: the attempt counts as none, since no batch can be the cause."""
    place: tuple[str, ...] = field(default=(), init=False)
    """What the story knew and the adapter could not know: feed, step, batch, ranges."""

    def __init_subclass__(cls) -> None:
        """An error is its sentence and its fields: each class is a dataclass."""
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        # By its arguments an error is made anew where it has crossed a process border.
        self.args = tuple(getattr(self, each.name) for each in fields(self) if each.init)

    def describe(self) -> str:
        """Where, as far as the sentence does not say it itself, and what happened."""
        sentence = self.sentence()
        place = ", ".join(part for part in self.place if part not in sentence)
        return f"{place}: {sentence}" if place else sentence

    def sentence(self) -> str:
        """What happened, in the words of the class."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return self.said.format(**told) or (self.__doc__ or "").strip()

    def __str__(self) -> str:
        return f"{self.describe()} {self.next_step}"


class VerificationFailed(IngestionError):
    """What lies in staging is not exactly what was planned: nothing is committed."""

    # Looking at the same files again would find the same: the batch must be landed anew.
    next_step = "Nothing was committed. Run again: another attempt lands the batch anew."

    batch: str
    problems: Sequence[str]

    def sentence(self) -> str:
        """The batch, and every problem with its exact offsets."""
        return f"batch {self.batch} is not proven: {'; '.join(self.problems)}."


class RepairRefused(IngestionError):
    """The repair that was asked for can't be done; nothing has changed."""

    next_step = "See what is open, and what a repair would do: tallystick repair FEED --dry-run"

    said = "{reason}"
    reason: str


class RetirementRefused(IngestionError):
    """A feed can't be retired as things stand; nothing has changed."""

    next_step = (
        "See what is open, and what two people may accept: tallystick findings FEED; what is not"
        " over: tallystick batches FEED"
    )

    said = "feed {feed} is not retired: {reason}."
    feed: str
    reason: str


class CheckFailed(IngestionError):
    """A run found something wrong, after it has landed everything that could be landed."""

    next_step = "See what it is, and what to do: tallystick findings FEED"

    feed: str
    verdict: str
    troubles: str
    findings: str

    def sentence(self) -> str:
        """The feed, the worst verdict, how many troubles, and the findings' numbers."""
        numbers = f" ({self.findings})" if self.findings else ""
        return f"feed {self.feed}: {self.verdict}, {self.troubles}{numbers}."
