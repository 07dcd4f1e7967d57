"""A plan and a commit ask the ledger as often for many partitions as for few."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import FeedName
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.planning.log_changes import LogChanges, LostRange
from tallystick.ledger.connection import Transaction
from tests.support.ledger_story import NO_TIME, TOPIC, LedgerStory


def statements_of_a_day(
    story: LedgerStory, partitions: range, monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """First plan, commit, a plan that loses some, one that cuts what a dead run claims."""
    asked: list[str] = []
    run = Transaction._run  # every statement goes this way

    def noted(self: Transaction, name: str, parameters: Any) -> Any:
        asked.append(name)
        return run(self, name, parameters)

    story.ledger.clock()  # connected
    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "_run", noted)
        story.open(dict.fromkeys(partitions, (0, 100)))
        story.committed(*((each, 0, 10) for each in partitions))
        known = story.generations
        lost = [
            LostRange(
                known[each].generation_id,
                OffsetRange(TopicPartition(TOPIC, each), 10, 20),
                FindingCode.EXPIRED,
            )
            for each in partitions
        ]
        story.change(LogChanges(lost=lost), dict.fromkeys(partitions, (20, 100)))
        story.planned(*((each, 20, 30) for each in partitions), lease=NO_TIME)
        story.ledger.accounts(story.feed)
    return asked


def test_statements_do_not_grow_with_partitions(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = statements_of_a_day(story, range(3), monkeypatch)
    another = LedgerStory(story.dsn, FeedName("payments"))
    many = statements_of_a_day(another, range(60), monkeypatch)
    assert len(few) > 30
    assert many == few
