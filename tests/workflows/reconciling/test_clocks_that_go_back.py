"""A ledger's clock may go back: a standby took over whose clock is behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tallystick.domain.verdicts import Verdict
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.meanwhile import Meanwhile
from tests.support.story import FEED, Story, a_landed_story


class AheadAtFirst:
    """A ledger whose clock is ten minutes ahead of the one that takes over."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def clock(self) -> datetime:
        clock: datetime = self._ledger.clock()
        return clock + timedelta(minutes=10)


def test_a_look_ends_nothing_that_was_found_after_it_began(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    story: Story = a_landed_story(ledger_databases(), tmp_path, 10)
    services = story.services()

    def lose_and_look() -> None:
        for each in (story.directory / "landing" / FEED).rglob("*.parquet"):
            each.unlink()
        assert reconcile(story.services()).verdict is Verdict.PROVEN_LOSS

    # It has listed and compared all files when the other one begins.
    ledger = Meanwhile(AheadAtFirst(services.ledger), lose_and_look, method="note_directory_looks")
    reconcile(replace(services, ledger=ledger))  # type: ignore[arg-type]

    standing = story.services().ledger.findings(FEED)
    assert [each.finding.verdict for each in standing]
