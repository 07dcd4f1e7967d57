"""What every error says: what happened, where, what to do next, and if a retry can help."""

from __future__ import annotations

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
