"""What is landed, and what a repair lands again, is compared before other copies of it go."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.errors import CheckFailed
from tallystick.workflows.landing import run
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import Kind, Log
from tests.support.story import FEED, Story
from tests.workflows.comparing.test_second_reader import (
    LOSS,
    OWNER,
    differing,
    land,
    log,
    looked,
    samples,
    story,
    with_reader,
)

__all__ = ["log", "story"]


def test_a_repair_that_lands_differing_rows_again_says_so_and_leaves_a_finding(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 500)
    served = iter(range(100))

    def changed() -> None:
        log.entries[250] = replace(log.entries[250], value=b"%d" % next(served))

    services, reader = with_reader(story, before=changed)
    land_feed(services, None, OWNER)
    assert differing(looked(story, services).findings) == [(LOSS, 1, 0, 0, 500)]
    [before] = story.services().ledger.findings(FEED)
    reader.seen.clear()

    report = repair_feed(services, [before.finding_id], OWNER)

    assert any(each.from_offset <= 250 < each.until_offset for each in reader.seen)
    assert [type(each) for each in report.errors] == [CheckFailed]
    [left] = story.services().ledger.findings(FEED)
    assert left.finding_id != before.finding_id
    assert left.finding.evidence["batch"] != before.finding.evidence["batch"]


def test_new_batches_are_compared_before_any_other_copy_is_swept(
    story: Story, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story)
    compared: list[int] = []
    monkeypatch.setattr(run, "sweep", lambda _: compared.append(len(samples(story))))

    land(story, services)

    assert compared == [1]
