"""The operator of every task but landing: it calls one function with its feed and its context."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.sdk import BaseOperator

from tallystick.orchestration.run_context import Context
from tallystick.settings.feed import Feed


class FeedTask(BaseOperator):
    """A task that does `work` for its feed, and pushes what that returns."""

    def __init__(
        self, *, feed: Feed, work: Callable[[Feed, Context], object], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.feed = feed
        self.work = work

    def execute(self, context: Context) -> object:
        """What the work returns."""
        return self.work(self.feed, context)
