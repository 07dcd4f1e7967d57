"""Errors of HDFS: it does not answer, refuses, or holds something else than it should."""

from __future__ import annotations

from tallystick.errors.ingestion import IngestionError


class StorageError(IngestionError):
    """HDFS did not do what was asked."""

    service: str = "HDFS"
    """Who was asked: with the addresses and the connection, as far as the adapter knows them."""


class StorageUnavailable(StorageError):
    """HDFS could not be reached, is in safe mode, or did not answer in time."""

    next_step = (
        "Check the NameNode and its DataNodes, then run again. What is committed stays; the next"
        " run lands the rest."
    )
    retry = True

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)

    def sentence(self) -> str:
        """Who was asked, the path, and the reason."""
        path, reason = self.args
        return f"{self.service} could not serve {path}: {reason}."


class RenameOutcomeUnknown(StorageUnavailable):
    """The answer to a rename was lost: it may have happened, or not."""

    next_step = "Nothing was deleted. Run again: the next run looks at both directories first."

    def __init__(self, source: str, target: str, reason: str) -> None:
        StorageError.__init__(self, source, target, reason)

    def sentence(self) -> str:
        """Both directories, and how the answer was lost."""
        source, target, reason = self.args
        return f"{self.service}: it is unknown if {source} was renamed to {target}: {reason}."


class StorageRefused(StorageError):
    """HDFS answered, and said no: permission, quota, or a read-only directory."""

    next_step = "Correct the permission or the quota, then run again. What is committed stays."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)

    def sentence(self) -> str:
        """Who was asked, the path, and HDFS's words."""
        path, reason = self.args
        return f"{self.service} refused {path}: {reason}."


class StorageLoginFailed(StorageRefused):
    """HDFS and we don't trust each other: a certificate, a ticket, a token, or a password."""

    next_step = "Correct the connection, then run again. What is committed stays."

    def sentence(self) -> str:
        """The path, and who did not trust whom."""
        path, reason = self.args
        return f"no trusted connection to {self.service} for {path}: {reason}."


class AttemptNotAsked(StorageError):
    """Another attempt, which could not be asked, may hold rows that would be given up."""

    next_step = (
        "Nothing is given up until then. Run again when it can be asked, or is in quarantine."
    )
    retry = True

    def __init__(self, path: str, reason: str, move: str | None) -> None:
        super().__init__(path, reason, move)

    def sentence(self) -> str:
        """The directory, why it could not be asked, and the move if nobody ever can."""
        path, reason, move = self.args
        last = f" If nobody can read it again, move it to quarantine: {move}." if move else ""
        return (
            f"{path} may hold rows that would be given up, and could not be asked: {reason}{last}"
        )


class AttemptUnfinished(StorageError):
    """An attempt's files are unfinished, and its Spark application may still be writing them."""

    next_step = (
        "Run again when the application has ended: what it has written is committed then, as far as"
        " it can be proven. After the time that it may take a run ends it; a Spark Connect server"
        " must answer for that."
    )
    retry = True

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)

    def sentence(self) -> str:
        """The directory, and why nobody knows that the application has ended."""
        path, reason = self.args
        return f"{path} is unfinished, and may still be written: {reason}."


class FileMissing(StorageError):
    """A file or directory is not there."""

    next_step = "Run reconcile: it says if committed data is missing."

    def __init__(self, path: str) -> None:
        super().__init__(path)

    def sentence(self) -> str:
        """The path that is not there."""
        return f"{self.args[0]} does not exist."


class ManifestMismatch(StorageError):
    """A directory holds something other than what its manifest claims."""

    next_step = "Touch nothing. Run reconcile, then compare the directory with its manifest."

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(path, expected, found)

    def sentence(self) -> str:
        """The path, what was expected and what was found."""
        path, expected, found = self.args
        return f"{path}: expected {expected}, found {found}."


class TargetOccupied(StorageError):
    """The target of a rename is a directory that somebody else has written."""

    next_step = "Touch neither directory. Find out who wrote the target."

    def __init__(self, source: str, target: str) -> None:
        super().__init__(source, target)

    def sentence(self) -> str:
        """Both directories."""
        source, target = self.args
        return f"cannot publish {source}: {target} exists already and is not ours."


class PublishedDataMissing(StorageError):
    """A committed batch is neither in staging nor at its target."""

    next_step = "Run reconcile: finding A8 names the ranges and how to get them back."

    def __init__(self, batch: str, source: str, target: str) -> None:
        super().__init__(batch, source, target)

    def sentence(self) -> str:
        """The batch, and both places that were looked at."""
        batch, source, target = self.args
        return f"batch {batch} is committed, but neither {source} nor {target} exists."
