"""The Spark provider's operator, bound to its task: spark-submit dies when the task does.

Overrides private methods of the provider, so the provider is pinned, and a test kills a real task.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from tallystick.spark.parent_death import die_with_parent


class BoundSparkSubmitHook(SparkSubmitHook):
    """Starts spark-submit in a given directory, bound to the starting thread, and listens to it."""

    directory: Path
    listener: Callable[[str], object] | None

    def submit(self, application: str = "", **kwargs: Any) -> str | None:
        """As the provider does it; Linux ends the child with the thread that called this."""
        try:
            return super().submit(
                application,
                preexec_fn=partial(die_with_parent, os.getpid()),
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                **kwargs,
            )
        finally:
            if self._submit_sp and self._submit_sp.stdout:
                self._submit_sp.stdout.close()

    @property
    def exit_code(self) -> int:
        """Of spark-submit; -1 when it was never started."""
        return self._submit_sp.returncode if self._submit_sp else -1

    def _process_spark_submit_log(self, itr: Iterator[str]) -> None:
        super()._process_spark_submit_log(self._heard(itr))

    def _heard(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            if self.listener:
                self.listener(line.rstrip("\n"))
            yield line


class BoundSparkSubmitOperator(SparkSubmitOperator):
    """The provider's operator with that hook."""

    directory: Path = Path()
    """Where spark-submit is started; to be set before the operator is executed."""
    listener: Callable[[str], object] | None = None
    """Called with each line that spark-submit says; likewise."""

    def _get_hook(self) -> BoundSparkSubmitHook:
        hook = super()._get_hook()
        hook.__class__ = BoundSparkSubmitHook
        hook.directory, hook.listener = self.directory, self.listener
        return hook
