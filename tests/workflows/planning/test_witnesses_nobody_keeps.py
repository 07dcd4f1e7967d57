"""What a look on record has shown is accounted for, whatever state its log is in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, Log, MinuteByMinute
from tests.support.story import FEED, Story
from tests.support.waivers import accept

ONE, TWO = Owner("one"), Owner("two")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One partition of ten records, landed."""
    broker = MinuteByMinute("orders", partitions=1)
    broker.logs[0].append(Kind.RECORD, 10)
    story = Story(ledger_databases(), tmp_path, broker)
    assert not land_feed(services_of(story), None, ONE).errors
    return story


def services_of(story: Story) -> Services:
    assert isinstance(story.broker, MinuteByMinute)
    return replace(story.services(), clock=story.broker)


def cuts_of(story: Story) -> set[tuple[int | None, int | None]]:
    standing = [each.finding for each in services_of(story).ledger.findings(FEED)]
    return {
        (each.from_offset, each.until_offset)
        for each in standing
        if each.code is FindingCode.LOG_CUT
    }


def test_records_of_a_life_that_only_a_reconcile_has_seen_are_named(story: Story) -> None:
    story.broker.recreate(partitions=1)
    story.broker.logs[0].append(Kind.RECORD, 8, value=b"second life")
    reconcile(services_of(story))  # its look is on record, and shows eight records
    second = story.broker.topic_id
    story.broker.recreate(partitions=1)
    story.broker.logs[0].append(Kind.RECORD, 5, value=b"third life")
    land_feed(services_of(story), None, TWO)

    ledger = services_of(story).ledger
    for each in ledger.findings(FEED):
        accept(ledger, each.finding_id)
    report = reconcile(services_of(story))

    told = [f"{each.cause} {each.evidence}" for each in report.findings]
    assert any(second in each for each in told), f"{report.verdict}: nobody names {second}"


def cut_twice(story: Story) -> Log:
    """A log that stopped at its first cut, and had shown 25 before its second one."""
    log = story.broker.logs[0]
    log.cut(5)
    land_feed(services_of(story), None, TWO)
    log.append(Kind.RECORD, 20, value=b"second")
    reconcile(services_of(story))  # its look is on record, and shows 25
    log.cut(12)
    log.append(Kind.RECORD, 30, value=b"third")
    return log


def test_what_a_stopped_log_has_shown_and_lost_is_told(story: Story) -> None:
    cut_twice(story)
    cuts = [
        each.finding_id
        for each in services_of(story).ledger.findings(FEED)
        if each.finding.code is FindingCode.LOG_CUT
    ]
    assert not repair_feed(services_of(story), cuts, Owner("repair")).errors
    land_feed(services_of(story), None, ONE)

    report = reconcile(services_of(story))

    assert report.verdict is not Verdict.PROVEN_OK, "[12, 25) were readable, seen, and are gone"


def test_each_cut_of_a_stopped_log_is_told_with_what_looks_have_seen(story: Story) -> None:
    log = story.broker.logs[0]
    log.cut(5)
    land_feed(services_of(story), None, TWO)
    shown = []
    for count, until in ((3, 6), (24, 20), (30, 35)):
        log.append(Kind.RECORD, count, value=b"other")
        for _ in range(2):
            reconcile(services_of(story))
            shown.append(cuts_of(story))
        log.cut(until)
    # Whoever looks twice tells nothing new, and a log that grows loses nothing.
    first, second, third = {(5, 10)}, {(5, 10), (6, 8)}, {(5, 10), (6, 8), (20, 30)}
    assert shown == [first, first, second, second, third, third]
    log.append(Kind.RECORD, 1)
    cuts = [each.finding_id for each in services_of(story).ledger.findings(FEED)]
    assert not repair_feed(services_of(story), cuts, Owner("repair")).errors
    land_feed(services_of(story), None, ONE)

    # [5, 10) was landed before; of the rest nobody has landed what was seen.
    reconcile(services_of(story))
    assert cuts_of(story) == {(6, 8), (20, 30), (35, 50)}
    assert services_of(story).ledger.generations(FEED)[0][-1].first_offset == 5
    assert story.published_offsets() == {0: sorted([*range(10), *range(5, 36)])}


def test_what_a_stopped_log_has_shown_is_told_when_its_epoch_has_expired(story: Story) -> None:
    log = cut_twice(story)
    log.log_start_offset = 20
    standing = [each.finding_id for each in services_of(story).ledger.findings(FEED)]
    assert not repair_feed(services_of(story), standing, Owner("repair")).errors
    land_feed(services_of(story), None, ONE)
    reconcile(services_of(story))

    told = [each.finding for each in services_of(story).ledger.findings(FEED)]
    named = {(each.code, each.from_offset, each.until_offset) for each in told}
    assert named == {(FindingCode.EXPIRED, 5, 20), (FindingCode.LOG_CUT, 20, 25)}


def test_what_a_partition_has_shown_before_its_first_plan_and_lost_is_told(story: Story) -> None:
    log = story.broker.logs[1] = Log()
    log.append(Kind.RECORD, 20, value=b"first")
    reconcile(services_of(story))  # its look is on record, and shows 20
    log.cut(12)
    log.append(Kind.RECORD, 30, value=b"second")
    land_feed(services_of(story), None, TWO)

    report = reconcile(services_of(story))

    assert report.verdict is not Verdict.PROVEN_OK, "[12, 20) were readable, seen, and are gone"
