"""Errors of HDFS: it does not answer, refuses, or holds something else than it should."""

from __future__ import annotations

from dataclasses import field

from tallystick.errors.ingestion import IngestionError


class StorageError(IngestionError):
    """HDFS did not do what was asked."""

    service: str = field(default="HDFS", init=False)
    """Who was asked: with the addresses and the connection, as far as the adapter knows them."""


class StorageUnavailable(StorageError):
    """HDFS could not be reached, is in safe mode, or did not answer in time."""

    next_step = (
        "Check the NameNode and its DataNodes, then run again. What is committed stays; the next"
        " run lands the rest."
    )
    retry = True

    said = "{service} could not serve {path}: {reason}."
    path: str
    reason: str


class RenameOutcomeUnknown(StorageUnavailable):
    """The answer to a rename was lost: it may have happened, or not."""

    next_step = "Nothing was deleted. Run again: the next run looks at both directories first."

    said = "{service}: it is unknown if {path} was renamed to {target}: {reason}."
    target: str


class StorageRefused(StorageError):
    """HDFS answered, and said no: permission, quota, or a read-only directory."""

    next_step = "Correct the permission or the quota, then run again. What is committed stays."

    said = "{service} refused {path}: {reason}."
    path: str
    reason: str


class StorageLoginFailed(StorageRefused):
    """HDFS and we don't trust each other: a certificate, a ticket, a token, or a password."""

    next_step = "Correct the connection, then run again. What is committed stays."

    said = "no trusted connection to {service} for {path}: {reason}."


class AttemptNotAsked(StorageError):
    """Another attempt, which could not be asked, may hold rows that would be given up."""

    next_step = (
        "Nothing is given up until then. Run again when it can be asked, or is in quarantine."
    )
    retry = True

    path: str
    reason: str
    move: str | None

    def sentence(self) -> str:
        """The directory, why it could not be asked, and the move if nobody ever can."""
        last = ""
        if self.move:
            last = f" If nobody can read it again, move it to quarantine: {self.move}."
        held = "may hold rows that would be given up, and could not be asked"
        return f"{self.path} {held}: {self.reason}{last}"


class AttemptUnfinished(StorageError):
    """An attempt's files are unfinished, and its Spark application may still be writing them."""

    next_step = (
        "Run again when the application has ended: what it has written is committed then, as far as"
        " it can be proven. After the time that it may take a run ends it; a Spark Connect server"
        " must answer for that."
    )
    retry = True

    said = "{path} is unfinished, and may still be written: {reason}."
    path: str
    reason: str


class FileMissing(StorageError):
    """A file or directory is not there."""

    next_step = "Run reconcile: it says if committed data is missing."

    said = "{path} does not exist."
    path: str


class ManifestMismatch(StorageError):
    """A directory holds something other than what its manifest claims."""

    next_step = "Touch nothing. Run reconcile, then compare the directory with its manifest."

    said = "{path}: expected {expected}, found {found}."
    path: str
    expected: str
    found: str


class TargetOccupied(StorageError):
    """The target of a rename is a directory that somebody else has written."""

    next_step = "Touch neither directory. Find out who wrote the target."

    said = "cannot publish {source}: {target} exists already and is not ours."
    source: str
    target: str


class PublishedDataMissing(StorageError):
    """A committed batch is neither in staging nor at its target."""

    next_step = "Run reconcile: finding A8 names the ranges and how to get them back."

    said = "batch {batch} is committed, but neither {source} nor {target} exists."
    batch: str
    source: str
    target: str
