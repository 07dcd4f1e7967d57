"""What can be found, by code, and how deep a check has to look for it."""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class FindingCode(StrEnum):
    """One code per anomaly that can be told apart."""

    EXPIRED = "A1"
    LOG_CUT = "A3"
    TOPIC_RECREATED = "A5"
    LEDGER_UNSOUND = "A6"
    SHORT_READ = "A7"
    COMMITTED_FILE_MISSING = "A8"
    STRAY_FILE = "A9"
    LEDGER_BEHIND = "A10"
    UNREADABLE_RECORD = "A11"
    LANDED_TWICE = "B2"
    PAYLOAD_TWICE = "B3"
    CONTENT_CHANGED = "C1"
    ABORTED_LANDED = "C2"
    ROWS_DIFFER = "C3"
    OVERDUE = "N1"
    STALLED_STABLE_OFFSET = "N2"
    UNFINISHED_BATCH = "N3"
    LOSS_NEAR = "W1"
    NO_PROGRESS = "Z5"
    COULD_NOT_TELL = "U1"


class Level(StrEnum):
    """How deep the check looked that made the finding."""

    L0 = "L0"
    L1 = "L1"
    L2 = "L2"
    L3 = "L3"
    L4 = "L4"
