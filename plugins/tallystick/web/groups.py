"""Feeds that one file declares by a pattern of topics, and that share their DAGs."""

from __future__ import annotations

from collections.abc import Mapping

from tallystick.domain.identities import FeedName
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.ledger import Ledger
from tallystick.settings.group_names import group_of, is_of_group
from tallystick.web.answers import FeedsAnswer


def of_group(answer: FeedsAnswer, group: str) -> FeedsAnswer:
    """The same of one group's feeds alone."""

    def is_mine(feed: str | None) -> bool:
        return feed is not None and group_of(feed) == group

    feeds = [each for each in answer.feeds if is_mine(each.feed)]
    return answer.but(
        feeds=feeds,
        known=len(feeds),
        wrong=[*filter(is_mine, answer.wrong)],
        signs=[each for each in answer.signs if is_mine(each.feed)],
        yesterday_open=[*filter(is_mine, answer.yesterday_open)],
    )


def feeds_in_group(ledger: Ledger, group: FeedName) -> Mapping[str, Verdict]:
    """The verdicts of a group's feeds, worst first; empty for a feed that is none."""
    heads = ledger.feed_heads(most_runs=0)
    found = {each.feed: each.verdict for each in heads if is_of_group(each.feed, group)}
    return dict(sorted(found.items(), key=lambda each: -each[1].severity))
