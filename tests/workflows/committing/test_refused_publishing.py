"""What is committed and not shown to readers is said at once, and nothing is read before it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.report.completeness import Proof
from tallystick.domain.rules.n3_unfinished_batch import NOT_SHOWN
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageRefused
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of, store_report
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story
from tests.trouble.scene import Before

RUN, NEXT = Owner("run"), Owner("next")

LONG = timedelta(hours=1)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Five records of each partition are landed, and seen by a look; three more wait."""
    story = a_landed_story(ledger_databases(), tmp_path, 5)
    looked(story.services())
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3)
    return story


def looked(services: Services) -> Verdict:
    """What a reconcile says, and leaves as a report."""
    found = reconcile(services)
    store_report(services, report_of(services, found))
    return found.verdict


def refuse() -> NoReturn:
    raise StorageRefused("/landing/orders", "the space quota is used up")


def refusing(story: Story, **terms: timedelta) -> Services:
    """Services of a storage that shows nothing more."""
    services = story.services(**terms)  # type: ignore[arg-type]
    return replace(services, store=Before("rename_exclusive", refuse)(services.store))


def proof_of(services: Services) -> Proof:
    proven = feed_completeness(services.ledger, FEED).proven
    assert proven.newest_look_at
    return proven.proof_of(proven.newest_look_at)


# However long the lease of the attempt that has committed: a refusal is no work that goes on.
@pytest.mark.parametrize("lease", [timedelta(0), LONG])
def test_a_refused_publish_is_on_every_face_at_once(story: Story, lease: timedelta) -> None:
    services = refusing(story, lease=lease)
    assert proof_of(services) is Proof.PROVEN
    [error] = land_feed(services, None, RUN).errors
    assert isinstance(error, StorageRefused)
    for _ in range(2):
        [told] = services.ledger.findings(FEED)
        assert told.finding.code.value == "N3"
        assert told.finding.cause.endswith(
            "HDFS refused /landing/orders: the space quota is used up."
        )
        assert proof_of(services) is Proof.UNKNOWN
        [head] = services.ledger.feed_heads(FEED, most_runs=1)
        assert head.standing == {Verdict.UNKNOWN: 1}
        assert looked(services) is Verdict.UNKNOWN


def test_a_run_reads_nothing_before_what_was_refused_is_shown(story: Story) -> None:
    land_feed(refusing(story), None, RUN)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 2)
    staged = story.staged()
    services = refusing(story)
    [said] = dry_run(services, None).warnings
    assert "a run publishes it first, and reads nothing before that" in said
    with pytest.raises(StorageRefused):
        land_feed(services, None, NEXT)
    # As Airflow's tasks do: `plan` does not wait for `finish`.
    with pytest.raises(StorageRefused):
        plan_feed(services, None, NEXT)
    assert story.staged() == staged
    assert services.ledger.accounts(FEED).unfinished == []

    services = story.services()
    land_feed(services, None, NEXT)
    assert services.ledger.findings(FEED) == []
    [ended] = services.ledger.all_findings(FEED)
    assert ended.closed_by == f"Batch {ended.finding.subject} is published."
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}
    assert looked(services) is Verdict.PROVEN_OK


def test_a_batch_between_commit_and_publish_is_on_its_way_while_its_lease_runs(
    story: Story,
) -> None:
    services = story.services(lease=LONG)
    batch_id = plan_feed(services, None, RUN).batches[0].batch_id
    attempt = land_batch(services, batch_id, AttemptId("1" * 16), RUN)
    assert attempt
    verify_and_commit(services, attempt)
    assert looked(services) is Verdict.PROVEN_OK
    publish(services, batch_id, RUN)
    assert services.ledger.all_findings(FEED) == []


def test_what_died_before_it_was_published_is_said_by_the_ledger_alone(story: Story) -> None:
    services = story.services()
    batch_id = plan_feed(services, None, RUN).batches[0].batch_id
    attempt = land_batch(services, batch_id, AttemptId("1" * 16), RUN)
    assert attempt
    verify_and_commit(services, attempt)
    assert services.ledger.findings(FEED) == []
    proven = feed_completeness(services.ledger, FEED).proven.partitions
    assert {each.blocked_by.name for each in proven if each.blocked_by} == {NOT_SHOWN}
    assert looked(services) is Verdict.UNKNOWN
    assert proof_of(services) is Proof.UNKNOWN
    publish(services, batch_id, NEXT)
    assert services.ledger.findings(FEED) == []
    assert proof_of(services) is Proof.PROVEN
