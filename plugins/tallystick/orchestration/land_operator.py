"""The task that lands one batch: the workflow's story, Spark started by the provider's operator, or
asked by a session of a Spark Connect server. The type of the feed's Spark connection decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from airflow.sdk.exceptions import AirflowException

from tallystick.domain.identities import AttemptId, BatchId
from tallystick.errors import (
    ApplicationFailed,
    ApplicationOverdue,
    ConfigurationError,
    ScrubFailed,
)
from tallystick.orchestration.bound_submit import BoundSparkSubmitOperator
from tallystick.orchestration.connections import airflow_connection, services_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.run_context import Context, owner_of
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tallystick.settings.feed import Feed

_NO_APPLICATION: Final = "(none was started)"


def _ignored(_: str) -> None:
    return None


class LandOperator(BoundSparkSubmitOperator):
    """Lands a batch in an attempt of its own, and gives the attempt to the tasks after it.

    Each try is another attempt with a newer token, so the operator never takes up an application of
    an earlier try (`durable`): what that one writes could not be committed any more.
    """

    template_fields: Sequence[str] = ("batch_id",)
    operator_extra_links = (PageLink(),)

    def __init__(self, *, feed: Feed, batch_id: str, **kwargs: Any) -> None:
        super().__init__(conn_id=feed.spark.connection, durable=False, **kwargs)
        self.feed = feed
        self.batch_id = batch_id
        self._interrupt: Callable[[], object] | None = None

    def execute(self, context: Context) -> dict[str, Any] | None:
        """The attempt's fields; None when nothing is left to land."""
        from tallystick.workflows.landing.land import land_batch

        attempt_id = AttemptId(str(context["ti"].id).replace("-", ""))
        with (
            in_airflow_terms(),
            services_of(self.feed, _OperatorRunner(self, context)) as services,
        ):
            self._interrupt = partial(services.spark.interrupt, attempt_id)
            attempt = land_batch(services, BatchId(self.batch_id), attempt_id, owner_of(context))
        return asdict(attempt) if attempt else None

    def on_kill(self) -> None:
        """End what the attempt does, wherever that is."""
        if self._interrupt:
            self._interrupt()
        if self._hook:
            super().on_kill()

    def submit(self, context: Context) -> None:
        """Run spark-submit as the operator's fields say now; raises AirflowException."""
        self._hook = None  # the one of an application before has that one's arguments
        super().execute(context)

    def end(self) -> None:
        """End the application that runs, and its spark-submit."""
        try:
            self.on_kill()
        finally:
            if self._hook:
                self._hook.on_kill()


class _OperatorRunner:
    """Fulfils the SparkRunner port with the task's own operator."""

    def __init__(self, operator: LandOperator, context: Context) -> None:
        self._operator, self._context = operator, context

    @property
    def longest_orphan(self) -> timedelta:
        """Nothing in client mode; in cluster mode as long as an application may take."""
        from tallystick.spark.submit_runner import longest_orphan
        from tallystick.wiring import spark_place

        feed = self._operator.feed
        return longest_orphan(
            spark_place(feed, airflow_connection), feed.spark.max_application_time
        )

    def interrupt(self, attempt_id: str) -> bool:
        """Nothing: in client mode an application has died with the task that started it, and in
        cluster mode it ends itself.
        """
        return True

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        """Return when the application has ended well; raises ApplicationFailed with its cause."""
        from tallystick.wiring import LANDING_APPLICATION

        self._read_kafka(order, LANDING_APPLICATION, started, _ignored)

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        """Return when the application has ended well; raises ApplicationFailed with its cause."""
        from tallystick.wiring import SEARCH_APPLICATION

        self._read_kafka(order, SEARCH_APPLICATION, _ignored, noted)

    def _read_kafka(
        self,
        order: LandingOrder,
        application: Path,
        started: Callable[[str], None],
        noted: Callable[[str], None],
    ) -> None:
        from tallystick.spark.connector_jars import require_jars
        from tallystick.wiring import shipped_secrets, spark_place

        require_jars(spark_place(self._operator.feed, airflow_connection))
        failed = self._failure(
            application,
            f"tallystick {order.feed} {order.batch_id}",
            order.plan_uri,
            shipped_secrets(self._operator.feed, airflow_connection),
            started,
            noted,
            f"batch {order.batch_id}",
        )
        if failed:
            raise ApplicationFailed(order.batch_id, *failed)

    def scrub(self, order: ScrubOrder) -> None:
        """Return when the application has ended well; raises ScrubFailed with its cause."""
        from tallystick.wiring import SCRUB_APPLICATION

        failed = self._failure(
            SCRUB_APPLICATION,
            f"tallystick {order.feed} scrub {order.scrub_id}",
            order.plan_uri,
            {},
            _ignored,
            _ignored,
            f"scrub {order.scrub_id}",
        )
        if failed:
            raise ScrubFailed(order.scrub_id, *failed)

    def _failure(
        self,
        application: Path,
        name: str,
        plan_uri: str,
        secrets: Mapping[str, str],
        started: Callable[[str], None],
        noted: Callable[[str], None],
        work: str,
    ) -> tuple[str, str] | None:
        """The application's id and why it failed; None when it has ended well.

        Raises ApplicationOverdue when it had to be ended.
        """
        from tallystick.spark.command import submit_command
        from tallystick.spark.overdue import LONGEST_READ, ended_after
        from tallystick.spark.submit_log import SubmitLog, note_in
        from tallystick.spark.work_directory import work_directory
        from tallystick.wiring import spark_place

        feed, operator = self._operator.feed, self._operator
        longest = feed.spark.max_application_time
        command = submit_command(
            spark_place(feed, airflow_connection),
            application=str(application),
            name=name,
            plan_uri=plan_uri,
            feed_conf=feed.spark.conf,
            has_secrets=bool(secrets),
            longest=longest,
        )
        log = SubmitLog()

        def listener(line: str) -> None:
            known = log.application_id
            log.add(line)
            if log.application_id and not known:
                started(log.application_id)
            note = note_in(line)
            if note is not None:
                deadline.expect(LONGEST_READ)
                noted(note)

        operator.application = command.application
        operator.application_args = [command.plan_uri]
        operator.conf = dict(command.conf)
        operator.files = command.files
        operator.jars = ",".join(command.place.jars) or None
        operator.name = command.name
        operator.py_files = command.py_files
        operator.env_vars = command.environment() or None
        operator.listener = listener
        with (
            work_directory(secrets) as operator.directory,
            ended_after(longest, operator.end) as deadline,
        ):
            try:
                operator.submit(self._context)
            except FileNotFoundError as error:
                raise ConfigurationError(
                    "spark-submit",
                    error.filename,
                    "a program on PATH",
                    where="the Spark connection",
                ) from error
            except AirflowException:
                if deadline.has_passed:
                    raise ApplicationOverdue(
                        work, log.application_id or _NO_APPLICATION, str(deadline.limit)
                    ) from None
                # Its text would repeat hundreds of lines that stand above in the log.
                return log.application_id or _NO_APPLICATION, log.reason(operator.exit_code)
        return None
