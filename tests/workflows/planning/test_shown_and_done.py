"""What a dry run shows is what the run then does: over drawn states of log, ledger and staging."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.rules.a1_expired import A1
from tallystick.domain.rules.evidence import kept_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import IngestionError
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.planning.plan_report import PlanReport
from tallystick.workflows.services import Services
from tests.support.dying_attempts import quarantined, record_proof, release_claims
from tests.support.ledger_story import HOUR
from tests.support.scripted_broker import Kind, Log, ScriptedBroker
from tests.support.story import FEED, Story
from tests.support.unreadable_store import LISTS, READS, unreadable
from tests.support.waivers import accept

LONG = timedelta(hours=1)
SAME_RUN = Owner("the run itself")
_numbers = count(1)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    return Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))


class World:
    """A feed to which things happen."""

    def __init__(self, story: Story) -> None:
        self.story, self._attempts = story, count(1)

    @property
    def logs(self) -> dict[int, Log]:
        return self.story.broker.logs

    def land(self) -> None:
        """A run that ends well, or as well as it can."""
        with suppress(IngestionError):
            land_feed(self.story.services(), None, Owner("before"))

    def grow(self) -> None:
        for log in self.logs.values():
            log.append(Kind.RECORD, 4)

    def end_with_a_marker(self) -> None:
        """The last offset of a log has no row, and nobody can tell why once it is gone."""
        self.logs[0].append(Kind.CONTROL, 1)

    def plan(self) -> None:
        """A run that dies behind its plan."""
        with suppress(IngestionError):
            plan_feed(self.story.services(), None, Owner("planned"))

    def plan_window(self) -> None:
        with suppress(IngestionError):
            plan_feed(self.story.services(max_partitions_per_batch=1), HOUR, Owner("hourly"))

    def hold(self) -> None:
        """A run that lives."""
        with suppress(IngestionError):
            plan_feed(self.story.services(lease=LONG), None, Owner("alive"))

    def hold_as_same(self) -> None:
        """An earlier try of the run that is shown: its lease has not run out yet."""
        with suppress(IngestionError):
            plan_feed(self.story.services(lease=LONG), None, SAME_RUN)

    def attempt(self, *, is_proven: bool = False) -> None:
        """One attempt that dies when its application has ended well, at the oldest dead batch."""
        services, owner = self.story.services(), Owner("tried")
        with suppress(IngestionError):
            for batch in plan_feed(services, None, owner).all_batches[:1]:
                number = f"{next(self._attempts):x}" * 16
                attempt = land_batch(services, batch.batch_id, AttemptId(number), owner)
                if attempt and is_proven:
                    record_proof(services, attempt)

    def attempt_proven(self) -> None:
        self.attempt(is_proven=True)

    def damage(self) -> None:
        """What lies in staging now can't be proven any more."""
        for file in (self.story.directory / "landing" / "_staging").rglob("*.parquet"):
            file.write_bytes(file.read_bytes()[:-7])

    def expire(self) -> None:
        """Retention takes all but the last two offsets of one log."""
        log = self.logs[0]
        log.log_start_offset = max(log.log_start_offset, len(log.entries) - 2)

    def expire_everywhere(self) -> None:
        for log in self.logs.values():
            log.append(Kind.RECORD, 2)
            log.log_start_offset = max(log.log_start_offset, len(log.entries) - 2)

    def lose_the_first_offsets(self) -> None:
        log = self.logs[1]
        log.log_start_offset = min(log.log_start_offset + 3, len(log.entries))

    def cut(self) -> None:
        """An unclean election takes the last offsets of one log, and others come in their place."""
        self.logs[0].cut(max(self.logs[0].log_start_offset, len(self.logs[0].entries) - 2))
        self.logs[0].append(Kind.RECORD, 5, value=b"other")

    def lose_a_leader(self) -> None:
        self.story.broker.leaderless = {1}

    def add_a_partition(self) -> None:
        self.logs.setdefault(2, Log()).append(Kind.RECORD, 2)

    def recreate(self) -> None:
        self.story.broker.recreate()
        self.grow()


EVENTS = (
    World.land,
    World.grow,
    World.end_with_a_marker,
    World.plan,
    World.plan_window,
    World.hold,
    World.hold_as_same,
    World.attempt,
    World.attempt_proven,
    World.damage,
    World.expire,
    World.expire_everywhere,
    World.lose_the_first_offsets,
    World.cut,
    World.lose_a_leader,
    World.add_a_partition,
    World.recreate,
)


def told(batches: object) -> list[object]:
    """Batches by what they hold: a new one has another name each time it is shown."""
    assert isinstance(batches, (list, tuple))
    return sorted((_told(each) for each in batches), key=repr)


def _told(plan: BatchPlan) -> object:
    return plan.window, plan.ordinal, [str(each.offsets) for each in plan.ranges]


def as_told(report: PlanReport) -> dict[str, object]:
    """All that a plan says, but for names that are made anew and for time."""
    return {
        "resumed": report.is_resumed and report.plan_id,
        "batches": told(report.batches),
        "adopted": [(each.batch_id, _told(each)) for each in report.adopted],
        "held": [(each.plan.batch_id, _told(each.plan)) for each in report.held],
        "wanted": report.wanted,
        "findings": sorted((each.key for each in report.findings), key=repr),
        "warnings": report.warnings,
    }


def outcome(plan: Callable[[], PlanReport]) -> object:
    try:
        return as_told(plan())
    except IngestionError as error:
        return type(error)


def happened(story: Story, *events: Callable[[World], None]) -> None:
    world = World(story)
    for event in (World.grow, World.land, World.grow, *events):
        event(world)


def assert_done_as_shown(services: Services, window: Window | None, owner: Owner) -> None:
    shown = outcome(lambda: dry_run(services, window, owner))
    assert outcome(lambda: dry_run(services, window, owner)) == shown, "it has changed something"
    assert outcome(lambda: plan_feed(services, window, owner)) == shown


@settings(
    derandomize=True,  # the same draws in every run: what a new one finds becomes an example
    max_examples=20,
)
@given(
    events=st.lists(st.sampled_from(EVENTS), max_size=6),
    window=st.sampled_from([None, HOUR]),
    owner=st.sampled_from([Owner("another"), SAME_RUN]),
    silent=st.sampled_from([None, None, READS, LISTS]),
)
@example([], None, SAME_RUN, None)
@example([World.attempt, World.attempt, World.damage], None, SAME_RUN, None)
@example([World.attempt, World.attempt], None, SAME_RUN, LISTS)
@example([World.hold_as_same, World.grow], None, SAME_RUN, None)
@example([World.plan_window, World.grow], HOUR, SAME_RUN, None)
@example([World.end_with_a_marker, World.attempt, World.expire_everywhere], None, SAME_RUN, None)
@example([World.hold, World.recreate], None, SAME_RUN, None)
@example([World.attempt, World.attempt, World.cut], None, SAME_RUN, None)
@example([World.attempt, World.attempt_proven, World.cut], None, SAME_RUN, None)
@example([World.attempt, World.expire, World.cut], None, SAME_RUN, None)
@example([World.attempt, World.hold_as_same, World.expire, World.cut], None, SAME_RUN, None)
@example([World.attempt, World.hold, World.recreate], None, Owner("another"), None)
@example([World.attempt_proven, World.hold, World.recreate], None, Owner("another"), None)
def test_what_is_shown_is_what_is_done(
    ledger_databases: Callable[[], str],
    tmp_path: Path,
    events: list[Callable[[World], None]],
    window: Window | None,
    owner: Owner,
    silent: frozenset[str] | None,
) -> None:
    directory = tmp_path / str(next(_numbers))
    directory.mkdir()
    story = Story(ledger_databases(), directory, ScriptedBroker("orders"))
    happened(story, *events)
    services = unreadable(story, "1" * 16, silent) if silent else story.services()

    assert_done_as_shown(services, window, owner)


def test_files_that_are_claimed_again_in_vain_are_lost_apart_from_what_nobody_read(
    story: Story,
) -> None:
    happened(story)
    services, owner = story.services(max_records_per_batch=2), Owner("dead")
    batches = plan_feed(services, None, owner).batches
    [read] = [each for each in batches if str(each.ranges[0].offsets) == "orders-0 [6, 8)"]
    assert land_batch(services, read.batch_id, AttemptId("1" * 16), owner)
    release_claims(story)
    # Nobody can say any more from which log the files were read: they can't be proven.
    [answer] = (story.directory / "landing" / "_staging").rglob("log.json")
    answer.unlink()
    for log in story.broker.logs.values():
        log.epoch += 1
        log.append(Kind.RECORD, 4)
        log.log_start_offset = 8

    shown = [each for each in dry_run(services, None).findings if each.rule == A1]
    assert told_of(shown) == {
        (0, 4, 6, Verdict.PROVEN_LOSS),
        (0, 6, 8, Verdict.UNKNOWN),
        (1, 4, 8, Verdict.PROVEN_LOSS),
    }
    assert_done_as_shown(services, None, SAME_RUN)

    report = land_feed(services, None, SAME_RUN)

    kept = [each for each in report.findings if kept_in(each.evidence)]
    assert told_of(kept) == {(0, 6, 8, Verdict.PROVEN_LOSS)}
    assert len(quarantined(story)) == 1


def told_of(found: Iterable[Finding]) -> set[tuple[object, ...]]:
    return {(each.partition, each.from_offset, each.until_offset, each.verdict) for each in found}


def test_a_committed_batch_is_published_before_a_window_is_planned_again(story: Story) -> None:
    happened(story, World.plan_window)
    services = story.services()
    [first, second] = plan_feed(services, HOUR, Owner("hourly")).batches
    attempt = land_batch(services, first.batch_id, AttemptId("1" * 16), Owner("hourly"))
    assert attempt
    verify_and_commit(services, attempt)

    shown = dry_run(story.services(), HOUR)
    done = land_feed(story.services(), HOUR, Owner("two")).plan

    assert [each.batch_id for each in shown.batches] == [second.batch_id]
    assert [each.batch_id for each in done.batches] == [second.batch_id]


def test_a_waived_finding_is_shown_as_waived_and_no_other_one(story: Story) -> None:
    happened(story)
    story.broker.leaderless = {1}
    land_feed(story.services(), None, Owner("before"))
    ledger = story.services().ledger
    [stored] = ledger.findings(FEED)
    accept(ledger, stored.finding_id)

    [shown] = dry_run(story.services(), None).findings
    [done] = land_feed(story.services(), None, Owner("two")).findings

    assert shown.verdict is done.verdict is Verdict.WAIVED

    story.broker.leaderless = {0}
    [other] = dry_run(story.services(), None).findings
    assert (other.partition, other.verdict) == (0, Verdict.UNKNOWN)
