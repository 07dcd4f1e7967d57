"""How a landing plan is carried out: by spark-submit, or by a warm Spark Connect server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LandingOrder:
    """Where the frozen plan lies, and under which names the run is to be found again."""

    feed: str
    batch_id: str
    attempt_id: str
    plan_uri: str
    """Full URI of plan.json in the attempt's staging directory."""


class SparkRunner(Protocol):
    """One way to run the landing function on a cluster."""

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        """Return when the application has ended well; `started` hears its id as soon as it is
        known.

        Raises ApplicationFailed. The application dies with this process.
        """
        ...
