"""The operator of every task but landing: it calls one function with its feed and its context."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from airflow.sdk import BaseOperator

from tallystick.errors import FeedUnknown
from tallystick.orchestration.failures import NEVER_AGAIN, in_airflow_terms
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.run_context import Context
from tallystick.orchestration.stats import step_told
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.feeds import feeds_folder, load_feed
from tallystick.settings.group_names import group_of


def feed_in(declared: Feed | FeedGroup, context: Context, name: str | None = None) -> Feed:
    """The feed that a task works for: of a group, the one of this name, else of the run's form.

    Raises AirflowFailException for one of another group: who may trigger this DAG has no say there.
    """
    if isinstance(declared, Feed):
        return declared
    wanted = name or str(context["params"]["feed"] or "")
    with in_airflow_terms():
        if group_of(wanted) != declared.name:
            raise FeedUnknown("feed", wanted, f"a feed of group {declared.name}", where="the form")
        return load_feed(feeds_folder(os.environ), wanted)


class FeedTask(BaseOperator):
    """A task that does `work` for its feed, and pushes what that returns."""

    template_fields: Sequence[str] = ("feed_name",)
    operator_extra_links = (PageLink(),)

    def __init__(
        self,
        *,
        feed: Feed | FeedGroup,
        work: Callable[[Feed, Context], object],
        feed_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**(kwargs | NEVER_AGAIN))  # a mapped one is made of all its defaults
        self.feed = feed
        self.work = work
        self.feed_name = feed_name

    def execute(self, context: Context) -> object:
        """Does the work."""
        feed = feed_in(self.feed, context, self.feed_name)
        with step_told(feed.name, self.task_id):
            return self.work(feed, context)

    def on_kill(self) -> NoReturn:
        """Leave the work at once; called by a signal in the thread that does it.

        Each block that the work has entered ends what it has begun: a full read's session of a
        Spark Connect server is interrupted. SystemExit is no Exception, which a workflow would take
        for the failure of a witness; Airflow tries the task again unless a person has ended it.
        """
        raise SystemExit(f"The task {self.task_id} was killed.")
