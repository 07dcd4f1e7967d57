"""Runs Spark applications by spark-submit. In client mode each of them dies with this process; in
cluster mode spark-submit does, and the driver may live on: YARN kills it where somebody is left to
ask for that, and else it ends itself.

It decides nothing about them: exit code 0 is success; what was written is for others to look at.
"""

from __future__ import annotations

import logging
import os
import re
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from tallystick.domain.rows.scrub import ScrubResult
from tallystick.errors import ApplicationOverdue, ConfigurationError, ScrubFailed
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tallystick.spark.command import SubmitCommand, Work, submit_command
from tallystick.spark.overdue import LONGEST_READ, Deadline, ended_after
from tallystick.spark.place import SparkPlace
from tallystick.spark.unreached import failure
from tallystick.spark.work_directory import work_directory
from tallystick.spark.yarn_applications import end_application, end_tagged

if TYPE_CHECKING:
    from tallystick.spark.submit_hook import HeardSubmitHook


from collections import deque

from tallystick.spark.begun import READING
from tallystick.spark.causes import LIMIT
from tallystick.spark.unreached import unreached_in

_KEPT_LINES: Final = 400
# Spark's own patterns begin with a time, with or without a date: "26/11/21 08:55:00 WARN Utils:
# ...".
_LEVEL: Final = re.compile(
    r"^(?:\S+ )?\d\d:\d\d:\d\d(?:[.,]\d+)? (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) "
)
_LEVELS: Final = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
# The landing's own line, in client mode; else YARN's and Kubernetes' client. YARN kills what it is
# told here, so no other line counts: jars in HDFS bear the ids of other people's applications.
_APPLICATION: Final = re.compile(
    r"^tallystick: application (\S+)"
    r"|\b(?:Submitted application|Application report for) (application_\d+_\d+)\b"
    r"|\b(spark-[0-9a-f]{32})\b"
)
# Of YARN's client, about an application whose driver ran elsewhere.
_DIAGNOSED: Final = re.compile(r"Client: Application diagnostics message: (.+)")
_OURS: Final = "tallystick: "
_NOTE: Final = f"{_OURS}note "
_FAILED: Final = re.compile(f"^{_OURS}(?:landing|scrub|search) failed: (.*)", re.DOTALL)
_ERROR_LINE: Final = re.compile(
    r"^(Caused by: )?[\w.$]*(Error|Exception)\b|^Exception in thread|^Error: "
)


def note_in(line: str) -> str | None:
    """Returns what an application has noted with this line; None where it is no note."""
    return line.removeprefix(_NOTE) if line.startswith(_NOTE) else None


class SubmitLog:
    """One run's output, line by line; keeps the last few hundred lines only."""

    def __init__(self) -> None:
        self.application_id: str | None = None
        self._has_driver = False
        self.is_reading = False
        self.unreached: dict[str, None] = {}
        """The brokers that Kafka's client could not reach, as it names them, in that order."""
        self._level = logging.INFO
        self._told: str | None = None
        self._diagnosed: str | None = None
        self._last: deque[str] = deque(maxlen=_KEPT_LINES)

    def add(self, line: str) -> int:
        """Take in a line; the level at which to log it: lines without one go on as the last one."""
        level, failed = _LEVEL.match(line), _FAILED.match(line)
        if level:
            self._level = _LEVELS[level[1]]
        elif failed:
            self._told, self._level = failed[1], logging.ERROR
        elif line.startswith(_OURS):
            self._level = logging.INFO
        self._has_driver |= line.startswith(f"{_OURS}application ")
        self.is_reading |= line == f"{_OURS}{READING}"
        if broker := unreached_in(line):
            self.unreached[broker] = None
        diagnosed = _DIAGNOSED.search(line)
        if diagnosed:
            self._diagnosed = diagnosed[1].strip()
        application = _APPLICATION.search(line)
        if application and self.application_id is None:
            self.application_id = next(each for each in application.groups() if each)
        self._last.append(line)
        return self._level

    @property
    def has_died(self) -> bool:
        """Says whether a driver that was up has gone without a word: a record may end its JVM."""
        return self._has_driver and self._told is None

    def reason(self, exit_code: int) -> str:
        """Says why the run failed: its own last word, else YARN's, else the last error,
        else the last line.
        """
        if self._told:
            return self._told
        if self._diagnosed:
            return self._diagnosed[:LIMIT]
        ended = f"killed by signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
        spoken = [line.strip() for line in self._last if line.strip()]
        errors = [line for line in spoken if _ERROR_LINE.match(line)]
        words = (errors or spoken or ["it said nothing"])[-1]
        return f"{ended}: {words.removeprefix('Caused by: ')}"[:LIMIT]


logger = logging.getLogger(__name__)

_AS_LIBRARY: Final = "_AIRFLOW__AS_LIBRARY"
"""Airflow's own variable: it is imported, and sets nothing up."""
LONGEST: Final = timedelta(hours=6)
NO_APPLICATION: Final = "(none was started)"
# They lie beside the one that lands.
SCRUB_APPLICATION: Final = "scrub.py"
SEARCH_APPLICATION: Final = "search.py"
# `local:` names a place on the cluster's nodes; other schemes are file systems that Spark asks.
_ELSEWHERE: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:")
# It is dead by then; what it wrote lies in the pipe.
_DRAIN_SECONDS: Final = 1.0
_CHUNK_BYTES: Final = 65536


def longest_orphan(place: SparkPlace, longest: timedelta) -> timedelta:
    """Says how long a driver may outlive its spark-submit, of `longest` for an application:
    in cluster mode the driver itself sees to that.
    """
    return timedelta(0) if place.deploy_mode == "client" else longest


def _ignored(_: str) -> None:
    return None


@dataclass(frozen=True, slots=True)
class _Heard:
    """A listener hears what an application says."""

    started: Callable[[str], None] = _ignored
    """Its id, once it reads, or has died; of a driver that runs elsewhere, which does not say so,
    at once.
    """
    noted: Callable[[str], None] = _ignored
    """Each of its notes."""


class SubmitRunner:
    """Fulfils the SparkRunner port with one spark-submit per landing or scrub."""

    def __init__(
        self,
        place: SparkPlace,
        *,
        application: Path,
        feed_conf: Mapping[str, str],
        kafka_secrets: Mapping[str, str],
        longest: timedelta = LONGEST,
    ) -> None:
        self._place = place
        self._application = application
        self._feed_conf = feed_conf
        self._kafka_secrets = kafka_secrets
        self._longest = longest
        self._running: RunningSubmit | None = None

    @property
    def longest_orphan(self) -> timedelta:
        """Nothing in client mode; in cluster mode as long as an application may take."""
        return longest_orphan(self._place, self._longest)

    def interrupt(self, attempt_id: str) -> bool:
        """Kill what the attempt has left on YARN, in cluster mode; False if YARN does not answer.

        Our own spark-submit goes first: what it submits after the question nobody would find.
        In client mode another one has died with the process that started it; in Kubernetes'
        cluster mode it ends itself.
        """
        ours = self._running
        application_id = ours.end() if ours and ours.work_id == attempt_id else None
        if not self._place.is_yarn_cluster:
            return True
        if application_id:
            return end_application(self._place, application_id)
        return end_tagged(self._place, attempt_id)

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        """Return when the application has ended well; raises ApplicationFailed with its cause.

        Raises ConfigurationError for a jar that is missing. Call it from a thread that lives as
        long as the application: Linux ends the child with the thread that started it.
        """
        self._read_kafka(order, self._application, _Heard(started=started))

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        """Return when the application has ended well; raises ApplicationFailed with its cause."""
        application = self._application.with_name(SEARCH_APPLICATION)
        self._read_kafka(order, application, _Heard(noted=noted))

    def _read_kafka(self, order: LandingOrder, application: Path, heard: _Heard) -> None:
        require_jars(self._place)
        command = submit_command(
            self._place,
            application=str(application),
            work=Work(order.feed, order.batch_id, order.attempt_id),
            plan_uri=order.plan_uri,
            feed_conf=self._feed_conf,
            has_secrets=bool(self._kafka_secrets),
            longest=self._longest,
        )
        log, exit_code = self._ended(command, self._kafka_secrets, heard, f"batch {order.batch_id}")
        if exit_code != 0:
            found = log.application_id or NO_APPLICATION
            raise failure(order, found, self._reason(log, exit_code), log.unreached)

    def scrub(self, order: ScrubOrder) -> ScrubResult:
        """Returns what the application has written; raises ScrubFailed with its cause."""
        command = submit_command(
            # Nothing is asked of Kafka: neither its connector is needed nor its secrets.
            replace(self._place, jars=()),
            application=str(self._application.with_name(SCRUB_APPLICATION)),
            work=Work(order.feed, "scrub", order.scrub_id),
            plan_uri=order.plan_uri,
            feed_conf=self._feed_conf,
            has_secrets=False,
            longest=self._longest,
        )
        log, exit_code = self._ended(command, {}, _Heard(), f"scrub {order.scrub_id}")
        if exit_code != 0:
            raise ScrubFailed(
                order.scrub_id, log.application_id or NO_APPLICATION, self._reason(log, exit_code)
            )
        return order.written()

    def _reason(self, log: SubmitLog, exit_code: int) -> str:
        """Says why it failed, and what prints the log of a driver that has written it elsewhere."""
        reason = log.reason(exit_code)
        command = self._place.log_command(log.application_id) if log.application_id else None
        return f"{reason}; the driver's log: {command}" if command else reason

    def _ended(
        self,
        command: SubmitCommand,
        secrets: Mapping[str, str],
        heard: _Heard,
        work: str,
    ) -> tuple[SubmitLog, int]:
        """Returns what the application said, and its exit code; raises ApplicationOverdue."""
        if "airflow" not in sys.modules:
            # A command's log is not Airflow's to set up.
            os.environ.setdefault(_AS_LIBRARY, "1")
        # Airflow takes seconds to import, for those alone who land by spark-submit.
        from tallystick.spark.submit_hook import HeardSubmitHook

        place = command.place
        listener = _Listener(heard, says_reading=place.deploy_mode == "client")
        with work_directory(secrets) as directory:
            command = replace(command, place=place.with_keytab_in(directory))
            hook = HeardSubmitHook(command, listener.hear)
            self._running = running = RunningSubmit(command.work.work_id, listener.log, hook)
            logger.info("starting spark-submit on %s: %s", place.master, command.work.name)
            with ended_after(self._longest, partial(_kill, running, place)) as deadline:
                listener.deadline = deadline
                try:
                    exit_code = hook.run(directory, os.environ)
                finally:
                    _kill(running, place)
                    hook.close()
        log = listener.log
        if deadline.has_passed and exit_code != 0:
            application = log.application_id or NO_APPLICATION
            raise ApplicationOverdue(work, application, str(deadline.limit))
        if exit_code != 0 and log.has_died:
            listener.tell_started()
        return log, exit_code


class _Listener:
    """Takes in the whole log, and passes it on line by line."""

    def __init__(self, heard: _Heard, *, says_reading: bool) -> None:
        self.log = SubmitLog()
        self.deadline: Deadline | None = None
        self._heard = heard
        self._says_reading = says_reading
        self._is_told = False

    def hear(self, line: str) -> None:
        """A note says that a read begins: it may not take as long as an application."""
        logger.log(self.log.add(line), "%s", line)
        if self.log.is_reading or not self._says_reading:
            self.tell_started()
        note = note_in(line)
        if note is not None:
            if self.deadline is not None:
                self.deadline.expect(LONGEST_READ)
            self._heard.noted(note)

    def tell_started(self) -> None:
        """Tell the application's id, once: it reads, or nobody knows if it had begun."""
        if self.log.application_id and not self._is_told:
            self._is_told = True
            self._heard.started(self.log.application_id)


def _kill(running: RunningSubmit, place: SparkPlace) -> None:
    """End spark-submit and its driver, unless they have ended.

    In client mode the driver is its child. In YARN's cluster mode YARN kills it; one that has not
    told its id until then is left to the next attempt. In Kubernetes' its pod is deleted.
    """
    process = running.hook.process
    if process is not None and process.poll() is None:
        application_id = running.end()
        process.wait()
        if place.is_yarn_cluster and application_id:
            end_application(place, application_id)


def require_jars(place: SparkPlace) -> None:
    """Return when each jar that must lie on this machine is there; raises ConfigurationError.

    Spark passes over a jar that is missing, and fails later with a stack trace about another thing.
    """
    missing = [each for each in place.jars if not _ELSEWHERE.match(each) and not _is_there(each)]
    if missing:
        raise ConfigurationError(
            "extra jars",
            ", ".join(missing),
            "full paths of files on this machine; `tallystick jars DIR` fetches them, and the"
            " sandbox has them after ./tallystick land or ./tallystick sandbox up",
            where="the Spark connection",
        )


def _is_there(jar: str) -> bool:
    # Spark resolves a relative path in a folder of its own, so there it never is.
    path = unquote(urlsplit(jar).path) if jar.startswith("file:") else jar
    return path.startswith("/") and (Path(path).exists() or bool(glob(path)))


@dataclass(slots=True)
class RunningSubmit:
    """One spark-submit, and what it has said until now."""

    work_id: str
    """Of the attempt, or of the scrub."""
    log: SubmitLog
    hook: HeardSubmitHook

    def end(self) -> str | None:
        """Kill it, so that it submits nothing more; the id of what it had submitted, if it said so.

        The hook deletes a driver's pod, if it may. YARN it would ask by a program that few workers
        have, so that is left to the caller.

        Called from a signal's handler, too, in the midst of a wait or of a read of its output: so
        it waits for nothing, and reads past Python's buffer.
        """
        process = self.hook.process
        if process is None:
            return self.log.application_id
        if process.poll() is None:  # not reaped yet, so the id is still its
            if self.hook.place.is_on_kubernetes:
                try:
                    self.hook.on_kill()
                except Exception as error:  # noqa: BLE001 - of whatever client Kubernetes has
                    logger.warning("The driver's pod is not deleted, and ends itself: %s", error)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if self.log.application_id is None and process.stdout is not None:
            with suppress(OSError, ValueError):  # ValueError: it is closed
                for line in _rest(process.stdout.fileno()).splitlines():
                    self.log.add(line)
        return self.log.application_id


def _rest(descriptor: int) -> str:
    """Reads what lies in the pipe, up to its end."""
    until, found = time.monotonic() + _DRAIN_SECONDS, bytearray()
    while select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            break
        found += chunk
    return found.decode(errors="replace")
