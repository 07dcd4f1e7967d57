"""How landings, searches and scrubs are carried out: by spark-submit, or by Spark Connect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from tallystick.domain.rows.scrub import ScrubPlan, ScrubResult
from tallystick.ports.progress import Told, unheard

Rehearse = Callable[[str, Callable[[str], object]], None]
"""Takes the server's name, and what lets it write a small Parquet directory at a URI."""


def _not_rehearsed(server: str, write: Callable[[str], object]) -> None:
    return None


@dataclass(frozen=True, slots=True)
class LandingOrder:
    """Where the frozen plan lies, and under which names the run is to be found again."""

    feed: str
    batch_id: str
    attempt_id: str
    plan_uri: str
    """Full URI of plan.json in the attempt's staging directory."""
    plan_text: str = field(kw_only=True, repr=False)
    """What is written there."""
    told: Told = field(default=unheard, compare=False, repr=False)
    """Hears how far the landing has come, as far as the engine says."""
    rehearse: Rehearse = field(default=_not_rehearsed, compare=False, repr=False)
    """Called by a server that is shared before it reads; raises StorageError."""


@dataclass(frozen=True, slots=True)
class ScrubOrder:
    """Where the scrub plan lies, and how its result is read where an application writes one."""

    feed: str
    scrub_id: str
    plan_uri: str
    """Full URI of scrub.json."""
    plan: ScrubPlan = field(kw_only=True, repr=False)
    """What is written there."""
    written: Callable[[], ScrubResult] = field(kw_only=True, compare=False, repr=False)
    """Reads the result at the plan's output; raises StorageError."""
    told: Told = field(default=unheard, compare=False, repr=False)
    """Hears how far it has come, as far as the engine says."""


class SparkRunner(Protocol):
    """One way to run the functions of `spark/` on a cluster.

    In client mode an application dies with this process. In cluster mode its driver may live on.

    Each method also raises SparkUnavailable where a server that is shared does not answer,
    SparkRefused where it refuses the connection, and ConfigurationError where something that the
    connection names is not there.
    """

    @property
    def longest_orphan(self) -> timedelta:
        """How long an application may go on when the process that started it has died, at most.

        Zero where it dies with that process.
        """
        ...

    def interrupt(self, attempt_id: str) -> bool:
        """End whatever an attempt still does, whoever started it; nothing where nothing runs.

        False: a server that is shared does not answer, and may take as long for the next attempt.
        Of spark-submit's applications, YARN kills those of cluster mode. In client mode our own is
        killed, and another has died with the process that started it; in Kubernetes' cluster mode
        `longest_orphan` alone says when another has ended, whatever is answered here. Raises
        nothing: an attempt that can't be interrupted can commit nothing.
        """
        ...

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        """Return when the application has ended well; `started` hears its id once it has begun to
        read records: what fails before is no record's fault.

        Raises ApplicationFailed, or ApplicationOverdue when it ran for longer than the feed allows.
        """
        ...

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        """Return when the unreadable offsets were looked for, with the result written.

        The order's plan is a `SearchPlan`. `noted` hears a note before each read: a `ReadNote`
        as JSON; none where the driver runs elsewhere. Raises ApplicationFailed; ApplicationOverdue
        where a single read takes minutes.
        """
        ...

    def scrub(self, order: ScrubOrder) -> ScrubResult:
        """What the files hold; raises ScrubFailed or ApplicationOverdue.

        An application that runs elsewhere writes it first: then StorageError is raised, too.
        """
        ...
