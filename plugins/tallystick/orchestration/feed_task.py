"""The operator of every task but landing: it calls one function with its feed and its context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from airflow.sdk import BaseOperator

from tallystick.orchestration.failures import NEVER_AGAIN
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.run_context import Context
from tallystick.orchestration.stats import step_told
from tallystick.settings.feed import Feed


class FeedTask(BaseOperator):
    """A task that does `work` for its feed, and pushes what that returns."""

    operator_extra_links = (PageLink(),)

    def __init__(
        self, *, feed: Feed, work: Callable[[Feed, Context], object], **kwargs: Any
    ) -> None:
        super().__init__(**NEVER_AGAIN, **kwargs)
        self.feed = feed
        self.work = work

    def execute(self, context: Context) -> object:
        """Does the work."""
        with step_told(self.feed.name, self.task_id):
            return self.work(self.feed, context)

    def on_kill(self) -> NoReturn:
        """Leave the work at once; called by a signal in the thread that does it.

        Each block that the work has entered ends what it has begun: a full read's session of a
        Spark Connect server is interrupted. SystemExit is no Exception, which a workflow would take
        for the failure of a witness; Airflow tries the task again unless a person has ended it.
        """
        raise SystemExit(f"The task {self.task_id} was killed.")
