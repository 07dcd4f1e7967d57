"""Complete up to, over logs that change and witnesses that are silent: where in doubt, no proof."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.report.completeness import Completeness, Proof
from tallystick.domain.report.held_back import held_back_by
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageUnavailable
from tallystick.ports.file_store import FileStore
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import (
    MOST_LOOKS,
    feed_completeness,
    report_of,
)
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.looks import record_look
from tests.support.scripted_broker import Kind, MinuteByMinute
from tests.support.story import FEED, Story
from tests.support.waivers import accept

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions, landed up to 15."""
    story = Story(ledger_databases(), tmp_path, MinuteByMinute("orders"))
    for count in (10, 5):
        for log in story.broker.logs.values():
            log.append(Kind.RECORD, count)
        land_feed(story.services(), None, OWNER)
    return story


def proven(story: Story) -> Completeness:
    return feed_completeness(story.services().ledger, FEED).proven


def proof_now(story: Story) -> Proof:
    found = proven(story)
    assert found.newest_look_at
    return found.proof_of(found.newest_look_at)


def reasons(story: Story) -> str:
    found = proven(story)
    assert found.newest_look_at
    return " ".join(held_back_by("orders", found, found.newest_look_at, {}))


def test_what_is_landed_is_proven(story: Story) -> None:
    assert proof_now(story) is Proof.PROVEN
    reconcile(story.services())
    assert proof_now(story) is Proof.PROVEN


def test_a_log_that_was_cut_is_not_complete_up_to_its_new_end(story: Story) -> None:
    log = story.broker.logs[0]
    landed_at = proven(story).up_to
    log.append(Kind.RECORD, 5)
    reconcile(story.services())
    log.cut(12)

    report = reconcile(story.services())

    assert [each.code for each in report.findings] == [FindingCode.LOG_CUT]
    assert proof_now(story) is not Proof.PROVEN
    assert "A3" in reasons(story)
    land_feed(story.services(), None, OWNER)
    reconcile(story.services())
    assert proof_now(story) is Proof.NOT_PROVEN
    up_to = proven(story).up_to
    assert landed_at
    assert up_to is None or up_to <= landed_at


def test_a_recreated_empty_topic_proves_nothing_of_the_old_one(story: Story) -> None:
    looked_at = proven(story).up_to
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    reconcile(story.services())
    story.broker.recreate()

    report = reconcile(story.services())

    assert report_of(story.services(), report).complete_up_to is None
    assert looked_at
    assert proven(story).up_to is None, "the ledger says what the report says"
    assert proof_now(story) is not Proof.PROVEN
    assert "A5" in reasons(story)


Interval = tuple[FindingCode, Verdict, int | None, int | None, int | None]
TAIL: set[Interval] = {(FindingCode.LOG_CUT, Verdict.PROVEN_LOSS, 0, 17, 20)}


def intervals(findings: Iterable[Finding]) -> set[Interval]:
    return {
        (each.code, each.verdict, each.partition, each.from_offset, each.until_offset)
        for each in findings
    }


@pytest.mark.parametrize("grown", [0, 3, 10], ids=["no growth", "to where it was", "beyond"])
def test_what_a_reconcile_saw_and_no_run_landed_is_named_when_it_is_cut(
    story: Story, grown: int
) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    reconcile(story.services())
    log.cut(17)
    if grown:
        log.append(Kind.RECORD, grown)

    assert intervals(reconcile(story.services()).findings) == TAIL
    assert proof_now(story) is not Proof.PROVEN
    report = land_feed(story.services(), None, OWNER)
    assert intervals(report.findings) == TAIL, "a partition that has stopped lasts"
    assert intervals(reconcile(story.services()).findings) == TAIL
    assert proof_now(story) is Proof.NOT_PROVEN
    assert story.published_offsets()[0] == list(range(15))


def test_what_a_plan_saw_and_its_budget_left_is_named_when_it_is_cut(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    land_feed(story.services(max_records_per_run=2), None, OWNER)
    log.cut(17)

    report = land_feed(story.services(), None, OWNER)

    assert intervals(report.findings) == TAIL
    assert proof_now(story) is not Proof.PROVEN


def test_what_was_seen_while_the_storage_was_silent_is_named_when_it_is_cut(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    services = story.services()
    reconcile(replace(services, store=Down(services.store)))
    log.cut(17)

    assert intervals(reconcile(services).findings) == TAIL
    assert proof_now(story) is not Proof.PROVEN


def test_a_change_of_leaders_after_a_look_is_no_cut(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    reconcile(story.services())
    log.epoch += 1
    assert reconcile(story.services()).findings == ()
    log.append(Kind.RECORD, 5)
    log.epoch += 1

    assert reconcile(story.services()).findings == ()
    assert land_feed(story.services(), None, OWNER).findings == []
    assert proof_now(story) is Proof.PROVEN


def test_what_was_cut_before_it_was_landed_stays_lost_in_a_new_generation(story: Story) -> None:
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    reconcile(story.services())
    log.cut(17)
    log.append(Kind.RECORD, 10)
    land_feed(story.services(), None, OWNER)
    [cut] = [each.finding_id for each in story.services().ledger.findings(FEED)]

    repair_feed(story.services(), (cut,), OWNER)
    land_feed(story.services(), None, OWNER)

    assert intervals(reconcile(story.services()).findings) == TAIL
    assert proof_now(story) is Proof.NOT_PROVEN
    accept(story.services().ledger, cut)
    assert proof_now(story) is Proof.PROVEN


class Down:
    """A store that does not answer."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        def refused(*args: Any, **kwargs: Any) -> Any:
            raise StorageUnavailable("/landing", "it is restarting")

        return refused if name in ("entries", "read_back") else getattr(self._store, name)


def test_a_look_proves_nothing_new_while_the_storage_is_silent(story: Story) -> None:
    assert isinstance(story.broker, MinuteByMinute)
    services = replace(story.services(), clock=story.broker)
    before = proven(story).up_to

    report = reconcile(replace(services, store=Down(services.store)))

    document = report_of(services, report)
    assert document.complete_up_to == proven(story).up_to == before
    assert proof_now(story) is Proof.UNKNOWN
    assert "the look proves nothing, for HDFS could not be asked" in reasons(story)
    assert report_of(services, reconcile(services)).complete_up_to == proven(story).newest_look_at
    assert proof_now(story) is Proof.PROVEN


def test_a_partition_that_the_new_topic_lacks_is_not_complete_over_its_loss(story: Story) -> None:
    story.broker.logs[1].append(Kind.RECORD, 5)
    reconcile(story.services())
    story.broker.recreate(partitions=1)
    land_feed(story.services(), None, OWNER)
    ledger = story.services().ledger
    for _ in range(MOST_LOOKS + 5):
        record_look(ledger, FEED, story.broker.snapshot("orders"))

    [gone] = [each for each in proven(story).partitions if each.partition == 1]

    assert gone.up_to is None
    assert proof_now(story) is not Proof.PROVEN


def test_a_log_that_was_cut_and_has_grown_again_is_not_proven_before_a_plan(story: Story) -> None:
    log = story.broker.logs[0]
    log.cut(12)
    log.append(Kind.RECORD, 3, value=b"other")

    report = reconcile(story.services())

    assert [each.code for each in report.findings] == [FindingCode.LOG_CUT]
    assert report_of(story.services(), report).complete_up_to != proven(story).newest_look_at
    assert proof_now(story) is not Proof.PROVEN
