"""A reconcile ends what it has looked for, never what others have found since it began to look."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.rules.findings import FindingCode, Level
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.workflows.committing.taking_over import take_over
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.dying_attempts import (
    FIRST,
    SECOND,
    THREE,
    TWO,
    a_half_landed_story,
    expire,
    landed,
    record_proof,
)
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """One landed batch."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def standing(story: Story) -> list[str]:
    return [each.finding.code.value for each in story.services().ledger.findings(FEED)]


def file_of(story: Story) -> Path:
    (file,) = (story.directory / "landing" / FEED).rglob("*.parquet")
    return file


def scrub_with(story: Story, meanwhile: Callable[[], object]) -> ReconcileReport:
    """A reconcile down to L3; something happens once Spark has read what is due."""
    services = story.services()
    spark = Meanwhile(services.spark, meanwhile, method="scrub")
    return reconcile(replace(services, spark=spark), Level.L3)  # type: ignore[arg-type]


def test_a_file_that_another_reconcile_misses_meanwhile_stays_missing(story: Story) -> None:
    def deleted() -> None:
        file_of(story).unlink()
        reconcile(story.services())
        assert standing(story) == ["A8", "A8"]

    report = scrub_with(story, deleted)
    assert standing(story) == ["A8", "A8"]
    assert report.has_failed


def test_a_short_read_of_a_run_meanwhile_stays_open(story: Story) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    visible = story.broker.visible

    def lands_too_little() -> None:
        story.broker.visible = lambda *asked: [  # type: ignore[method-assign]
            each for each in visible(*asked) if each[0] != 12
        ]
        land_feed(story.services(), None, OWNER)
        assert "A7" in standing(story)

    scrub_with(story, lands_too_little)
    assert "A7" in standing(story)


def file_put_back(story: Story) -> Callable[[], None]:
    """A file that was found missing is there again; a call deletes it anew, and that is found."""
    file = file_of(story)
    kept = file.read_bytes()
    file.unlink()
    reconcile(story.services())
    file.write_bytes(kept)

    def deleted_again() -> None:
        file.unlink()
        reconcile(story.services())

    return deleted_again


def test_what_is_confirmed_while_a_reconcile_looks_stays_open(story: Story) -> None:
    """The file is put back, and deleted again once this reconcile has listed it."""
    deleted_again = file_put_back(story)
    scrub_with(story, deleted_again)
    stored = story.services().ledger.all_findings(FEED)
    assert [each.state for each in stored] == [FindingState.OPEN, FindingState.OPEN]


def test_what_is_confirmed_just_before_the_closing_stays_open(story: Story) -> None:
    """Between its last question and its answer, another reconcile finds the same again."""
    deleted_again = file_put_back(story)
    services = story.services()
    # The ledger's own rules ask for findings first, then what closes them.
    ledger = Meanwhile(services.ledger, deleted_again, method="findings", call=2)
    report = reconcile(replace(services, ledger=ledger))  # type: ignore[arg-type]
    assert standing(story) == ["A8", "A8"]
    assert report.has_failed


class TakenOverOnceListed:
    """A store; another run takes the attempt's files over when its directory was just listed."""

    def __init__(self, store: Any, path: str, take_over: Callable[[], object]) -> None:
        self._store, self._path, self._take_over = store, path, take_over
        self.is_taken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def entries(self, path: str) -> Any:
        found = self._store.entries(path)
        if path == self._path and not self.is_taken:
            self.is_taken = True
            self._take_over()
        return found


def test_files_that_a_run_takes_over_while_a_reconcile_looks_are_not_lost(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    story = a_half_landed_story(ledger_databases(), tmp_path)
    batch_id = landed(story).batch_id
    services = story.services()
    plan = services.ledger.batch(batch_id).plan
    services.ledger.begin_attempt(batch_id, attempt_id=SECOND, owner=TWO, lease=services.lease)
    expire(story)
    store: Any = TakenOverOnceListed(
        services.store,
        f"/landing/_staging/{batch_id}",
        lambda: take_over(story.services(), plan, FIRST, THREE),
    )

    report = reconcile(replace(services, store=store))

    assert store.is_taken
    assert Verdict.PROVEN_LOSS not in {each.verdict for each in report.findings}


class CommitBesideEachLook:
    """A broker; before each answer one more attempt commits: that waits for no planning lock."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._verified = [self._land(each) for each in range(5)]
        rmtree(story.directory / "landing" / "_staging")  # nobody finds anything to ask
        story.broker.logs[0].log_start_offset = len(story.broker.logs[0].entries)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._story.broker, name)

    def _land(self, number: int) -> Attempt:
        self._story.broker.logs[0].append(Kind.RECORD, 5)
        services, owner = self._story.services(), Owner(f"run {number}")
        [batch] = plan_feed(services, None, owner).batches
        attempt = land_batch(services, batch.batch_id, AttemptId(f"{number}" * 16), owner)
        assert attempt
        record_proof(services, attempt)
        return attempt

    def snapshot(self, topic: str) -> Any:
        if self._verified:
            self._story.services().ledger.commit(self._verified.pop(0))
        return self._story.broker.snapshot(topic)


def test_what_runs_have_landed_beside_each_look_is_not_lost(story: Story) -> None:
    broker: Any = CommitBesideEachLook(story)

    report = reconcile(replace(story.services(), broker=broker), Level.L1)

    assert FindingCode.EXPIRED not in {each.code for each in report.findings}


def test_a_log_that_is_cut_while_runs_commit_beside_each_look_stays_cut(story: Story) -> None:
    broker: Any = CommitBesideEachLook(story)
    story.broker.logs[0].cut(8)

    report = reconcile(replace(story.services(), broker=broker), Level.L1)

    told = {(each.code.value, each.verdict) for each in report.findings}
    assert ("A3", Verdict.PROVEN_LOSS) in told
