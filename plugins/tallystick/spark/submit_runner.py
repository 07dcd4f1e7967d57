"""Runs a landing or a scrub by spark-submit. The application dies with this process.

It decides nothing about either: exit code 0 is success; what was written is for others to look at.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Final

from tallystick.errors import ApplicationFailed, ConfigurationError, ScrubFailed
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tallystick.spark.command import SparkPlace, SubmitCommand, submit_command
from tallystick.spark.parent_death import die_with_parent
from tallystick.spark.submit_log import SubmitLog
from tallystick.spark.work_directory import work_directory

logger = logging.getLogger(__name__)

NO_APPLICATION: Final = "(none was started)"
# Lies beside the one that lands.
SCRUB_APPLICATION: Final = "scrub.py"


class SubmitRunner:
    """Fulfils the SparkRunner port with one spark-submit per landing or scrub."""

    def __init__(
        self,
        place: SparkPlace,
        *,
        application: Path,
        feed_conf: Mapping[str, str],
        kafka_secrets: Mapping[str, str],
    ) -> None:
        self._place = place
        self._application = application
        self._feed_conf = feed_conf
        self._kafka_secrets = kafka_secrets

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        """Return when the application has ended well; raises ApplicationFailed with its cause.

        Call it from a thread that lives as long as the application: Linux ends the child with the
        thread that started it.
        """
        command = submit_command(
            self._place,
            application=str(self._application),
            name=f"tallystick {order.feed} {order.batch_id}",
            plan_uri=order.plan_uri,
            feed_conf=self._feed_conf,
            has_secrets=bool(self._kafka_secrets),
        )
        log, exit_code = _ended(command, self._kafka_secrets, started)
        if exit_code != 0:
            raise ApplicationFailed(
                order.batch_id, log.application_id or NO_APPLICATION, log.reason(exit_code)
            )

    def scrub(self, order: ScrubOrder) -> None:
        """Return when the application has ended well; raises ScrubFailed with its cause."""
        command = submit_command(
            # Nothing is asked of Kafka: neither its connector is needed nor its secrets.
            replace(self._place, jars=()),
            application=str(self._application.with_name(SCRUB_APPLICATION)),
            name=f"tallystick {order.feed} scrub {order.scrub_id}",
            plan_uri=order.plan_uri,
            feed_conf=self._feed_conf,
            has_secrets=False,
        )
        log, exit_code = _ended(command, {}, lambda _: None)
        if exit_code != 0:
            raise ScrubFailed(
                order.scrub_id, log.application_id or NO_APPLICATION, log.reason(exit_code)
            )


def _ended(
    command: SubmitCommand, secrets: Mapping[str, str], started: Callable[[str], None]
) -> tuple[SubmitLog, int]:
    """What the application said, and its exit code."""
    with work_directory(secrets) as directory, _process(command, directory) as (process, output):
        return _follow(output, started), process.wait()


def _follow(output: IO[str], started: Callable[[str], None]) -> SubmitLog:
    """The whole log, passed on line by line until the output ends."""
    log = SubmitLog()
    is_known = False
    for raw in output:
        line = raw.rstrip("\n")
        logger.log(log.add(line), "%s", line)
        if log.application_id and not is_known:
            is_known = True
            started(log.application_id)
    return log


@contextmanager
def _process(
    command: SubmitCommand, directory: Path
) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    """The running spark-submit and its output; leaving early kills it and its driver."""
    argv = command.argv()
    logger.info("starting spark-submit on %s: %s", command.place.master, command.name)
    try:
        process = subprocess.Popen(
            argv,
            cwd=directory,
            env=os.environ | command.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=partial(die_with_parent, os.getpid()),
        )
    except FileNotFoundError as error:
        raise ConfigurationError(
            "spark-submit",
            argv[0],
            "a program on PATH, or its full path",
            where="the Spark connection",
        ) from error
    with process:
        assert process.stdout is not None  # asked for above
        try:
            yield process, process.stdout
        finally:
            if process.returncode is None:  # interrupted: not reaped yet, so the id is still its
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
