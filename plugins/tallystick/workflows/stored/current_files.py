"""Which files readers of a feed are to read now, and where each of them lies.

A batch's files are the feed's from its commit on, in staging until they are published; those that a
repair has replaced are not.
"""

from __future__ import annotations

from tallystick.domain.identities import FeedName
from tallystick.domain.window import Window
from tallystick.ledger.batches import FileRecord
from tallystick.ledger.ledger import Ledger


def current_paths(ledger: Ledger, feed: FeedName, window: Window | None = None) -> list[str]:
    """Paths of all committed, unretracted files with rows, in the order of their commits.

    With a window only those of batches whose label lies in it: a label is the start of the window
    that the batch was landed for, or the instant of its plan.
    """
    return [
        each.path
        for each in ledger.files(feed)
        if each.file.record_count and (window is None or is_labelled_in(window, each))
    ]


def is_labelled_in(window: Window, record: FileRecord) -> bool:
    """True when the label of the file's batch lies in the window, its end excluded."""
    return window.from_instant <= record.plan.label < window.until_instant
