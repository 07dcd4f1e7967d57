"""What tests of a rebuild do with a feed: land it, look at its directories, compare ledgers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.ledger_account import account_of
from tests.support.story import FEED, Story

OWNER = Owner("test")


def land(story: Story) -> RunReport:
    report = land_feed(story.services(max_records_per_batch=8), None, OWNER)
    assert not report.errors
    return report


def directories(story: Story) -> list[Path]:
    """Where the batches are published."""
    return sorted((story.directory / "landing" / FEED).rglob("batch=*"))


def files(story: Story) -> list[Path]:
    """What readers see."""
    return sorted((story.directory / "landing" / FEED).rglob("*.parquet"))


def assert_same(story: Story, before: object) -> None:
    """The ledger is what it was, reconcile is content, and nothing is left to land."""
    assert account_of(story) == before
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK
    assert land(story).plan.all_batches == ()


@contextmanager
def hidden(story: Story) -> Iterator[None]:
    """Nobody sees what is published meanwhile; afterwards it lies beside what has come since."""
    published = story.directory / "landing" / FEED
    kept = story.directory / "kept"
    published.rename(kept)
    yield
    for each in sorted(kept.rglob("batch=*")):
        target = published / each.relative_to(kept)
        target.parent.mkdir(parents=True, exist_ok=True)
        each.rename(target)
