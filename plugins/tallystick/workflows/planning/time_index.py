"""Asks the broker's time index what a decision wants to know of it."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

from tallystick.domain.planning.window_cuts import FirstOffsets, Question
from tallystick.workflows.services import Services

Decided = TypeVar("Decided")


def answered(services: Services, search: Generator[Question, FirstOffsets, Decided]) -> Decided:
    """What the search comes to when the broker answers its questions."""
    try:
        question = next(search)
        while True:
            first = services.broker.offsets_at(
                services.topic, question.instant, question.partitions
            )
            question = search.send(first)
    except StopIteration as found:
        decided: Decided = found.value
        return decided
