"""Every error of Tallystick: what happened, where, what to do next, and if a retry can help.

An error is for a story that could not go on. Nothing to land, a batch that is committed already, an
expired range: these are values, not errors.
"""

from __future__ import annotations

from tallystick.errors.configuration import (
    ConfigurationError,
    ConnectionMissing,
    FeedFileInvalid,
    FeedUnknown,
    RunParameterUnknown,
    SecretsExposed,
    WindowIncomplete,
    WindowMissing,
)
from tallystick.errors.ingestion import IngestionError
from tallystick.errors.ledger import (
    AttemptFenced,
    BatchBusy,
    BatchUnknown,
    ClaimConflict,
    CommitOutcomeUnknown,
    EvidenceChanged,
    LedgerBehind,
    LedgerError,
    LedgerRefused,
    LedgerUnavailable,
    ReportMissing,
    SchemaOutOfDate,
)
from tallystick.errors.run import CheckFailed, RepairRefused, VerificationFailed
from tallystick.errors.source import (
    AnotherCluster,
    BrokerUnavailable,
    LogUnreadable,
    PartitionsLeaderless,
    SourceChanged,
    SourceError,
    SourceRefused,
    TimesUnknown,
    TopicUnknown,
)
from tallystick.errors.spark import (
    ApplicationFailed,
    ApplicationOverdue,
    RecordsUnreadable,
    ScrubFailed,
    SparkError,
    SparkRefused,
    SparkUnavailable,
)
from tallystick.errors.storage import (
    AttemptNotAsked,
    AttemptUnfinished,
    FileMissing,
    ManifestMismatch,
    PublishedDataMissing,
    RenameOutcomeUnknown,
    StorageError,
    StorageRefused,
    StorageUnavailable,
    TargetOccupied,
)

__all__ = [
    "AnotherCluster",
    "ApplicationFailed",
    "ApplicationOverdue",
    "AttemptFenced",
    "AttemptNotAsked",
    "AttemptUnfinished",
    "BatchBusy",
    "BatchUnknown",
    "BrokerUnavailable",
    "CheckFailed",
    "ClaimConflict",
    "CommitOutcomeUnknown",
    "ConfigurationError",
    "ConnectionMissing",
    "EvidenceChanged",
    "FeedFileInvalid",
    "FeedUnknown",
    "FileMissing",
    "IngestionError",
    "LedgerBehind",
    "LedgerError",
    "LedgerRefused",
    "LedgerUnavailable",
    "LogUnreadable",
    "ManifestMismatch",
    "PartitionsLeaderless",
    "PublishedDataMissing",
    "RecordsUnreadable",
    "RenameOutcomeUnknown",
    "RepairRefused",
    "ReportMissing",
    "RunParameterUnknown",
    "SchemaOutOfDate",
    "ScrubFailed",
    "SecretsExposed",
    "SourceChanged",
    "SourceError",
    "SourceRefused",
    "SparkError",
    "SparkRefused",
    "SparkUnavailable",
    "StorageError",
    "StorageRefused",
    "StorageUnavailable",
    "TargetOccupied",
    "TimesUnknown",
    "TopicUnknown",
    "VerificationFailed",
    "WindowIncomplete",
    "WindowMissing",
]
