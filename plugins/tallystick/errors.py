"""Every error of Tallystick: what happened, where, what to do next, and if a retry can help.

An error is for a story that could not go on. Nothing to land, a batch that is committed already, an
expired range: these are values, not errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class IngestionError(Exception):
    """Something stopped the story."""

    next_step: ClassVar[str] = "Read the log above this line."
    retry: ClassVar[bool] = False
    place: tuple[str, ...] = ()
    """What the story knew and the adapter could not know: feed, step, batch, ranges."""

    def describe(self) -> str:
        """Where, as far as the sentence does not say it itself, and what happened."""
        sentence = self.sentence()
        place = ", ".join(part for part in self.place if part not in sentence)
        return f"{place}: {sentence}" if place else sentence

    def sentence(self) -> str:
        """What happened, in the words of the class."""
        return " ".join(str(part) for part in self.args) or (self.__doc__ or "").strip()

    def __str__(self) -> str:
        return f"{self.describe()} {self.next_step}"


class ConfigurationError(IngestionError):
    """A setting is missing or wrong."""

    next_step = "Correct the setting and run again."

    def __init__(self, setting: str, value: object, accepted: str, *, where: str = "") -> None:
        super().__init__(setting, value, accepted, where)
        self.setting, self.value, self.accepted, self.where = setting, value, accepted, where

    def __reduce__(self) -> tuple[object, ...]:
        return (_configuration_error, (type(self), *self.args), self.__dict__)

    def sentence(self) -> str:
        """The place, the setting, its value and what is accepted."""
        place = f"{self.where}: " if self.where else ""
        value = "missing" if self.value is None else repr(self.value)
        return f"{place}{self.setting} is {value}; accepted: {self.accepted}."


def _configuration_error(
    kind: type[ConfigurationError], setting: str, value: object, accepted: str, where: str
) -> ConfigurationError:
    """The error again, on the other side of a process border."""
    return kind(setting, value, accepted, where=where)


class FeedFileInvalid(ConfigurationError):
    """Feed files can't be used: every problem of every file, one line each."""

    next_step = "Correct the feed file, then run: ./tallystick feed check"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("feed files", f"{len(problems)} problem(s)", "files without one")
        self.args = (tuple(problems),)
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), self.args, self.__dict__)

    def sentence(self) -> str:
        """The problems, each with file, line, key, value and what is accepted."""
        return "\n".join(self.problems)

    def __str__(self) -> str:
        return f"{self.describe()}\n{self.next_step}"


class FeedUnknown(ConfigurationError):
    """No feed bears this name."""

    next_step = "List the feeds: ./tallystick feed list"

    def sentence(self) -> str:
        """The name, the folder, and the names that are there."""
        return f"there is no feed {self.value!r} in {self.where}; {self.accepted}."


class ConnectionMissing(ConfigurationError):
    """A connection that a feed names does not exist."""

    next_step = "Create it in Airflow, or set one of these variables, or: ./tallystick sandbox up"

    def sentence(self) -> str:
        """The connection's id, and every place that was looked at."""
        return f"connection {self.setting!r} does not exist; looked for: {self.accepted}."


class WindowIncomplete(ConfigurationError):
    """A run that needs a window has none, or only half of one."""

    next_step = "Give both ends of the window, or none."


class WindowMissing(ConfigurationError):
    """A feed that lands up to its window's end was started without a window."""

    next_step = "Give a window, or set plan.until: now in the feed file."


class SourceError(IngestionError):
    """Kafka did not give what was asked."""


class BrokerUnavailable(SourceError):
    """No broker answered in time, or a partition has no leader."""

    next_step = "Check the brokers, then run again: what is committed stays, the rest lands then."
    retry = True

    def __init__(self, servers: str, reason: str) -> None:
        super().__init__(servers, reason)

    def sentence(self) -> str:
        """The servers asked, and what they said."""
        servers, reason = self.args
        return f"Kafka at {servers} did not answer: {reason}."


class PartitionsLeaderless(BrokerUnavailable):
    """Some partitions of a topic have no leader, while others have one."""


class TopicUnknown(SourceError):
    """The topic does not exist on this cluster."""

    next_step = "Create the topic, or correct source.topic in the feed file, then run again."

    def __init__(self, topic: str, servers: str) -> None:
        super().__init__(topic, servers)

    def sentence(self) -> str:
        """The topic and the cluster."""
        topic, servers = self.args
        return f"topic {topic!r} does not exist on the cluster at {servers}."


class SourceRefused(SourceError):
    """The broker answered, and said no: authorisation, authentication, or a wrong setting."""

    next_step = "Check the connection's user and its rights, then run again."

    def __init__(self, place: str, reason: str) -> None:
        super().__init__(place, reason)

    def sentence(self) -> str:
        """What was asked, and what the broker said."""
        place, reason = self.args
        return f"Kafka refused {place}: {reason}."


class AnotherCluster(SourceError):
    """The connection leads to another Kafka cluster than the one the feed has landed from."""

    next_step = (
        "Correct the connection. If the topic has moved for good, give it a new feed: offsets of"
        " two clusters must not mix."
    )

    def __init__(self, feed: str, known: str, found: str) -> None:
        super().__init__(feed, known, found)

    def sentence(self) -> str:
        """The feed, its cluster, and the one that answers."""
        feed, known, found = self.args
        return f"feed {feed} lands from cluster {known}, but cluster {found} answers."


class SourceChanged(SourceError):
    """The log is not the one that was planned: re-created, or expired in the meantime."""

    next_step = "Nothing was committed. The next plan records what is lost and lands the rest."

    def __init__(self, batch: str, reason: str) -> None:
        super().__init__(batch, reason)

    def sentence(self) -> str:
        """The batch, and what changed."""
        batch, reason = self.args
        return f"batch {batch}: {reason}."


class StorageError(IngestionError):
    """HDFS did not do what was asked."""


class StorageUnavailable(StorageError):
    """HDFS could not be reached, is in safe mode, or did not answer in time."""

    next_step = (
        "Check the NameNode and its DataNodes, then run again: what is committed stays,"
        " the rest is landed then."
    )
    retry = True

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)

    def sentence(self) -> str:
        """The path asked for, and the reason."""
        path, reason = self.args
        return f"HDFS could not serve {path}: {reason}."


class RenameOutcomeUnknown(StorageUnavailable):
    """The answer to a rename was lost: it may have happened, or not."""

    next_step = "Nothing was deleted. Run again: the finisher looks at both directories first."

    def __init__(self, source: str, target: str, reason: str) -> None:
        StorageError.__init__(self, source, target, reason)

    def sentence(self) -> str:
        """Both directories, and how the answer was lost."""
        source, target, reason = self.args
        return f"it is unknown if {source} was renamed to {target}: {reason}."


class StorageRefused(StorageError):
    """HDFS answered, and said no: permission, quota, or a read-only directory."""

    next_step = "Mend the permission or the quota, then run again: what is committed stays."

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)

    def sentence(self) -> str:
        """The path, and HDFS's words."""
        path, reason = self.args
        return f"HDFS refused {path}: {reason}."


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

    next_step = "Touch nothing. Run reconcile, and look at both."

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(path, expected, found)

    def sentence(self) -> str:
        """The path, what was expected and what was found."""
        path, expected, found = self.args
        return f"{path}: expected {expected}, found {found}."


class TargetOccupied(StorageError):
    """Publishing found a foreign directory at its target."""

    next_step = "Stop, touch neither. Find out who wrote the target directory."

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


class SparkError(IngestionError):
    """Spark could not do its part."""


class ApplicationFailed(SparkError):
    """A Spark application ended with an error."""

    work = "batch"
    next_step = "Read the Spark log above. Nothing was committed; the next attempt starts anew."
    retry = True

    def __init__(self, batch: str, application: str, reason: str) -> None:
        super().__init__(batch, application, reason)

    def sentence(self) -> str:
        """The batch, the application, its last words."""
        what, application, reason = self.args
        return f"{self.work} {what}: Spark application {application} failed: {reason}."


class ScrubFailed(ApplicationFailed):
    """The Spark application that reads landed files in full ended with an error."""

    work = "scrub"
    next_step = "Read the Spark log above. Nothing was changed; what was not read is still due."


class VerificationFailed(IngestionError):
    """What lies in staging is not exactly what was planned: nothing is committed."""

    # Looking at the same files again would find the same: the batch must be landed anew.
    next_step = "Nothing was committed. Run again: the batch is landed anew by another attempt."

    def __init__(self, batch: str, problems: Sequence[str]) -> None:
        super().__init__(batch, tuple(problems))

    def sentence(self) -> str:
        """The batch, and every problem with its exact offsets."""
        batch, problems = self.args
        return f"batch {batch} is not proven: {'; '.join(problems)}."


class LedgerError(IngestionError):
    """The ledger did not do what was asked."""


class LedgerUnavailable(LedgerError):
    """The ledger's database can't be reached."""

    next_step = "Check the database and connection ledger_default, then run again: nothing is lost."
    retry = True

    def __init__(self, reason: str) -> None:
        super().__init__(reason)

    def sentence(self) -> str:
        """What the database client said; never the password."""
        return f"the ledger can't be reached: {self.args[0]}."


class LedgerRefused(LedgerError):
    """The ledger's schema or its rights refused a statement."""

    next_step = "Nothing changed. This is a defect or a missing right: report it with this text."

    def __init__(self, statement: str, reason: str) -> None:
        super().__init__(statement, reason)

    def sentence(self) -> str:
        """The statement's name and the database's words."""
        statement, reason = self.args
        return f"the ledger refused {statement}: {reason}."


class ClaimConflict(LedgerError):
    """The schema refused a range that overlaps another one."""

    next_step = "Plan again: another run has claimed these offsets. Nothing was changed."
    retry = True

    def __init__(self, feed: str, detail: str) -> None:
        super().__init__(feed, detail)

    def sentence(self) -> str:
        """The feed, and the two ranges."""
        feed, detail = self.args
        return f"feed {feed}: a planned range overlaps one in the ledger: {detail}."


class BatchBusy(LedgerError):
    """Another attempt holds this batch and is alive."""

    next_step = "Leave it alone; if its owner is dead, the lease runs out within two minutes."
    retry = True

    def __init__(self, batch: str, owner: str, seconds_left: float) -> None:
        super().__init__(batch, owner, seconds_left)

    def sentence(self) -> str:
        """The batch, who holds it, and for how long at least."""
        batch, owner, seconds_left = self.args
        return f"batch {batch} is held by {owner} for another {seconds_left:.0f} s at least."


class BatchUnknown(LedgerError):
    """No such batch is in the ledger."""

    next_step = "List the batches: ./tallystick batches FEED"

    def __init__(self, batch: str) -> None:
        super().__init__(batch)

    def sentence(self) -> str:
        """The id that was asked for."""
        return f"batch {self.args[0]} is not in the ledger."


class AttemptFenced(LedgerError):
    """A newer attempt holds this batch."""

    next_step = "Stop. Leave this attempt's staging directory to the sweeper."

    def __init__(self, batch: str, token: int, newest: int) -> None:
        super().__init__(batch, token, newest)

    def sentence(self) -> str:
        """The batch, this attempt's token and the newest one."""
        batch, token, newest = self.args
        return f"batch {batch}: token {token} is older than {newest}."


class CommitOutcomeUnknown(LedgerError):
    """The connection died at COMMIT: it may have happened, or not."""

    next_step = "Nothing was deleted. Run again: the attempt is looked up before anything is done."
    retry = True

    def __init__(self, batch: str, attempt: str, reason: str) -> None:
        super().__init__(batch, attempt, reason)

    def sentence(self) -> str:
        """The batch and the attempt whose commit is unknown."""
        batch, attempt, reason = self.args
        return f"batch {batch}: it is unknown if attempt {attempt} committed: {reason}."


class SchemaOutOfDate(LedgerError):
    """The ledger's schema is not the one this code knows."""

    next_step = "Run: ./tallystick ledger migrate (older schema), or update Tallystick (newer one)."

    def __init__(self, found: int, wanted: int) -> None:
        super().__init__(found, wanted)

    def sentence(self) -> str:
        """Both schema numbers."""
        found, wanted = self.args
        return f"the ledger has schema {found}, this code needs {wanted}."


class ReportMissing(LedgerError):
    """No report of the feed was stored, or none is as old as was asked for."""

    next_step = "Make one: ./tallystick reconcile FEED"


class LedgerBehind(LedgerError):
    """Readers' directories hold batches that this ledger has never heard of (finding A10)."""

    next_step = "Nothing was landed. Run: ./tallystick ledger rebuild FEED (docs/runbook.md, A10)."

    def __init__(self, feed: str, directories: Sequence[str]) -> None:
        super().__init__(feed, tuple(directories))

    def sentence(self) -> str:
        """The feed, how many directories, and the first of them."""
        feed, found = self.args
        return f"feed {feed}: the ledger lacks {len(found)} published batches, first {found[0]}."


class RepairRefused(IngestionError):
    """What was asked for can't be repaired so; nothing has changed."""

    next_step = "Look at what is open, and what would be done: ./tallystick repair FEED --dry-run"


class CheckFailed(IngestionError):
    """A run found something wrong, after everything that could be landed has been."""

    next_step = "Each finding above names its next step."

    def __init__(self, feed: str, findings: Sequence[str]) -> None:
        super().__init__(feed, tuple(findings))

    def sentence(self) -> str:
        """The feed and its findings, one sentence each."""
        feed, findings = self.args
        return f"feed {feed}: {len(findings)} finding(s): " + "; ".join(findings) + "."
