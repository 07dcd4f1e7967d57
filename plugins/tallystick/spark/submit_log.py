"""Reads what spark-submit says: levels, the application's id, and why it failed. Pure."""

from __future__ import annotations

import logging
import re
from collections import deque
from typing import Final

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
