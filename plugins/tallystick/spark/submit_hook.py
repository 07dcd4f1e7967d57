"""Airflow's own hook for spark-submit, told what a landing needs and heard line by line.

The hook builds the command, starts it, follows its output, masks what it quotes, and reads the exit
code of a driver in Kubernetes. Here is added what it has no parameter for: the death with the
process that started it, the environment without Airflow's secrets, and who hears the output.
"""

from __future__ import annotations

import logging
import shlex
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import AirflowException
from airflow.sdk import Connection

from tallystick.errors import ConfigurationError
from tallystick.spark.command import SubmitCommand
from tallystick.spark.parent_death import dying_with_parent

logger = logging.getLogger(__name__)

_STARTER: Final = "start-spark-submit"
_NO_CODE: Final = "exit code is: None"
_WHOLE_COMMAND: Final = "Spark-Submit cmd"


class HeardSubmitHook(SparkSubmitHook):
    """The provider's hook on one command; each line that spark-submit says is heard."""

    def __init__(self, command: SubmitCommand, heard: Callable[[str], None]) -> None:
        self._command = command
        self.place = place = command.place
        self._lines = _Lines(heard)
        super().__init__(
            conf=dict(command.conf),
            conn_id=command.work.feed,
            files=command.files,
            py_files=command.py_files,
            jars=",".join(place.jars) or None,
            principal=place.principal,
            keytab=place.keytab,
            name=command.work.name,
            application_args=[command.plan_uri],
            spark_binary=place.spark_submit,
            deploy_mode=place.deploy_mode,
        )

    def get_connection(self, conn_id: str) -> Connection:
        """The connection that was read and checked already, where the hook would read it anew.

        It would take one that is missing for YARN.
        """
        return Connection(conn_id=conn_id, conn_type="spark", host=self.place.master)

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """Returns the hook's log, which has each line of spark-submit."""
        return self._lines

    @property
    def process(self) -> subprocess.Popen[str] | None:
        """The running spark-submit; None until it is started.

        The hook has no public name for it. Whoever kills a script must kill what it has started,
        and wait for it.
        """
        found: subprocess.Popen[str] | None = self._submit_sp
        return found

    def run(self, directory: Path, inherited: Mapping[str, str]) -> int:
        """The command's exit code, or that of its driver in Kubernetes, once it has ended.

        It works in this directory, and Linux ends it with the calling thread. Raises
        ConfigurationError where there is no such program.
        """
        place = self.place
        env = place.environment(inherited)
        options: dict[str, Any] = {
            "cwd": directory,
            "env": env,
            "errors": "replace",
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
        }
        try:
            starter = _starter(directory, place.spark_submit, env.get("PATH"))
            self.submit(self._command.application, executable=starter, **options)
        except FileNotFoundError as error:
            raise ConfigurationError(
                "spark-submit",
                place.spark_submit,
                "a program on PATH, or its full path",
                where="the Spark connection",
            ) from error
        except PermissionError as error:
            accepted = "a folder from which programs may be started (not mounted with noexec)"
            where = "the environment of spark-submit"
            raise ConfigurationError(
                "TMPDIR", str(directory.parent), accepted, where=where
            ) from error
        except AirflowException as error:  # an exit code; who has heard the lines knows why
            code = self.process.returncode if self.process else None
            # Of a driver in Kubernetes whose log does not say it.
            return 0 if code == 0 and _NO_CODE in str(error) else code or 1
        return 0

    def close(self) -> None:
        """Let go of the output of a process that has ended."""
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()


class _Lines(logging.LoggerAdapter[logging.Logger]):
    """The hook's log: its own words go to ours, those of spark-submit to who hears them."""

    def __init__(self, heard: Callable[[str], None]) -> None:
        super().__init__(logger, {})
        self._heard = heard

    def info(self, msg: object, *args: object, **kwargs: Any) -> None:
        """A line of spark-submit is a message without arguments; the hook's own have some.

        The whole command is left out: keys of others may stand in it, under names that the hook
        does not mask.
        """
        if not args:
            self._heard(str(msg))
        elif not str(msg).startswith(_WHOLE_COMMAND):
            super().info(msg, *args, **kwargs)


def _starter(directory: Path, program: str, path: str | None) -> Path:
    """A script that becomes the program, whose arguments it is given, and dies with this thread."""
    starter = directory / _STARTER
    become = shlex.join(dying_with_parent([program], path=path))
    starter.write_text(f'#!/bin/sh\nexec {become} "$@"\n')
    starter.chmod(0o700)
    return starter
