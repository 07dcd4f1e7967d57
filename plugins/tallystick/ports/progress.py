"""How far a piece of work has come: told by whoever does it, shown by whoever waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec

P = ParamSpec("P")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Progress:
    """What is done now, and as much as is known of how far it has come."""

    phase: str
    """A step of the story, or a part of one, in a word or two."""
    done: int = 0
    total: int | None = None
    """None: nobody knows how much there is."""
    unit: str = ""
    """What is counted, in the plural; empty where nothing is."""
    is_estimate: bool = False
    """True where `done` follows from a share of the work, and was not counted."""
    note: str = ""
    """What was counted besides: `3 of 8 files`."""
    part: str = ""
    """Of a larger piece of work: `batch 2 of 3`."""


Told = Callable[[Progress], None]


def unheard(_: Progress) -> None:
    """Nobody waits for it."""


def harmless(call: Callable[P, object], *, what: str) -> Callable[P, None]:
    """The call, until it raises: that is logged once, and from then on nothing is called.

    Progress may not break the work of which it tells.
    """
    is_well = True

    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        nonlocal is_well
        if not is_well:
            return
        try:
            call(*args, **kwargs)
        except Exception:
            is_well = False
            log.warning("%s is told no more; the work goes on.", what, exc_info=True)

    return called
