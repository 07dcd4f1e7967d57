"""What is told to a Kafka consumer group for tools that watch lag; nothing is ever read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class FrontierGroup(Protocol):
    """A group in which a feed's frontiers stand as committed offsets."""

    def show(self, feed: str, topic: str, frontiers: Mapping[int, int]) -> None:
        """Commit the frontiers, by partition; raises a SourceError where that can't be done.

        Raises SourceRefused, and changes nothing, for a group that somebody else seems to use.
        """
        ...
