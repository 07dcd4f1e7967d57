"""A dry run says in the task's log what it would do, and keeps it for the page of its run.

An XCom of the run is where it is kept: the ledger records nothing of a dry run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from tallystick.orchestration.run_context import Context

log = logging.getLogger(__name__)

SHOWN: Final = "dry_run"
"""The XCom's key."""
MOST_LINES: Final = 200
_LONGEST: Final = 2_000


def show(
    context: Context, lines: Iterable[tuple[int, str]], *, evidence: Sequence[str] = ()
) -> None:
    """Log each line at its level, and keep the first of them for the page.

    The digests of the evidence stand beside them: what is then done is done of that alone.
    """
    told = list(lines)
    for level, words in told:
        log.log(level, "%s", words)
    kept = [
        {"text": words[:_LONGEST], "is_warning": level >= logging.WARNING}
        for level, words in told[:MOST_LINES]
    ]
    value = {"lines": kept, "left_out": len(told) - len(kept), "evidence": list(evidence)}
    context["ti"].xcom_push(key=SHOWN, value=value)
