"""The second reader: a sample of each new batch in the run's check, then batches in turn (L4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import SAME, LogCheck
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.second_read import SliceRead
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BrokerUnavailable
from tallystick.workflows.committing import proving
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.comparing import second_reading
from tallystick.workflows.landing import land as landing
from tallystick.workflows.landing.checking import check
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning import observing
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, Log, ScriptedBroker, ScriptedReader
from tests.support.story import FEED, Story
from tests.support.waivers import accept

OWNER = Owner("test")
C3, LOSS, UNKNOWN = FindingCode.ROWS_DIFFER, Verdict.PROVEN_LOSS, Verdict.UNKNOWN


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    return Story(ledger_databases(), tmp_path, ScriptedBroker("orders", partitions=1))


@pytest.fixture
def log(story: Story) -> Log:
    return story.broker.logs[0]


@dataclass
class Reader:
    """The scripted reader, with something happening before, or instead."""

    inner: ScriptedReader
    before: Callable[[], None] = lambda: None
    seen: list[OffsetRange] = field(default_factory=list)

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        self.before()
        self.seen += slices
        return self.inner.read(slices, isolation)


def with_reader(story: Story, before: Callable[[], None] = lambda: None) -> tuple[Services, Reader]:
    reader = Reader(ScriptedReader(story.broker), before)
    return replace(story.services(), second_reader=reader), reader


def with_settings(services: Services, **settings: Any) -> Services:
    changed = services.feed.reconcile.model_copy(update=settings)
    return replace(services, feed=services.feed.model_copy(update={"reconcile": changed}))


def land(story: Story, services: Services | None = None) -> None:
    report = land_feed(services or story.services(), None, OWNER)
    assert not report.errors


def looked(story: Story, services: Services | None = None, **settings: Any) -> ReconcileReport:
    return reconcile(with_settings(services or story.services(), **settings), Level.L4)


def differing(findings: Sequence[Finding]) -> list[tuple[Any, ...]]:
    return [
        (each.verdict, each.generation, each.partition, each.from_offset, each.until_offset)
        for each in findings
        if each.code is C3
    ]


def recorded(story: Story) -> list[tuple[Any, ...]]:
    return differing([each.finding for each in story.services().ledger.findings(FEED)])


def samples(story: Story) -> list[dict[str, Any]]:
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        rows = hand.execute(
            "SELECT sample, is_clean, is_complete FROM batch_check WHERE level = 'L4'"
            " ORDER BY check_id"
        ).fetchall()
    return [{**sample, "is_clean": a, "is_complete": b} for sample, a, b in rows]


def rewritten(log: Log, *offsets: int) -> None:
    """What the log holds there is another record now: nobody can tell how."""
    for each in offsets:
        log.entries[each] = replace(log.entries[each], value=b"another")


def test_a_run_compares_a_sample_of_what_it_has_landed_and_has_it_on_record(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 1_000)
    services, reader = with_reader(story)

    land(story, services)

    [kept] = samples(story)
    assert (kept["turn"], kept["is_clean"], kept["not_compared"]) == (0, True, None)
    assert kept["offsets"] == sum(each.span for each in reader.seen) <= 128
    assert (reader.seen[0].from_offset, reader.seen[-1].until_offset) == (0, 1_000)


def test_a_run_compares_nothing_twice_and_what_others_have_left(story: Story, log: Log) -> None:
    for _ in range(3):
        log.append(Kind.RECORD, 10)
        land(story, replace(story.services(), second_reader=None))
    assert samples(story) == []
    log.append(Kind.RECORD, 10)
    services, reader = with_reader(story)

    for _ in range(2):
        land(story, services)

    assert [each.from_offset for each in reader.seen] == [30, 20, 10, 0], "the newest first"


def test_a_run_looks_at_the_newest_batches_alone(
    story: Story, log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        log.append(Kind.RECORD, 10)
        land(story, replace(story.services(), second_reader=None))
    monkeypatch.setattr(second_reading, "_NEWEST", 2)
    services, reader = with_reader(story)

    land(story, services)
    assert [each.from_offset for each in reader.seen] == [20, 10]
    assert "batches before the newest 2" in caplog.text
    reader.seen.clear()
    looked(story, services)
    assert reader.seen[0].from_offset == 0, "reconcile comes to it first"


def test_a_run_tells_which_of_its_rows_differ_and_repair_lands_them_again(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3, 8))

    report = land_feed(services, None, OWNER)

    assert not report.errors
    assert differing(report.findings) == recorded(story) == [(LOSS, 1, 0, 0, 10)]
    [stored] = story.services().ledger.findings(FEED)
    assert stored.finding.level is Level.L4
    assert "2 of 10 compared offsets differ, 3 to 8" in stored.finding.cause
    [first, second] = stored.finding.evidence["records"]  # type: ignore[misc]
    assert (first["offset"], second["offset"]) == (3, 8)
    assert first["landed"]["hash"] != first["served"]["hash"]
    assert (first["landed"]["value"], first["served"]["value"]) == ("b'v3'", "b'another'")
    assert [each["is_clean"] for each in samples(story)] == [False]

    repair_feed(story.services(), [stored.finding_id], OWNER)

    assert recorded(story) == []
    assert looked(story).verdict is Verdict.PROVEN_OK
    assert story.published_offsets() == {0: list(range(10))}


def test_a_check_that_is_run_again_tells_what_its_first_life_has_found(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story, before=lambda: rewritten(log, 3))
    since = land_feed(services, None, OWNER).plan.planned_at

    assert differing(check(story.services(), since, OWNER)) == [(LOSS, 1, 0, 0, 10)]
    assert differing(check(story.services(), since, Owner("another run"))) == []


def unheard() -> None:
    raise BrokerUnavailable("scripted", "it is away")


def test_a_sample_that_cannot_be_taken_is_said_and_stops_nothing(
    story: Story, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    log.append(Kind.RECORD, 10)
    services, _ = with_reader(story, before=unheard)

    report = land_feed(services, None, OWNER)

    assert (list(report.errors), list(report.findings)) == ([], [])
    assert "The second reader could not compare batch" in caplog.text
    [kept] = samples(story)
    assert (kept["is_clean"], kept["is_complete"], kept["offsets"]) == (False, False, 0)
    assert "it is away" in kept["not_compared"]
    assert story.published_offsets() == {0: list(range(10))}

    services, reader = with_reader(story)
    land(story, services)
    assert [each.from_offset for each in reader.seen] == [0], "the next run tries again"


def test_what_expired_between_landing_and_sample_is_no_difference(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)

    def expire() -> None:
        log.log_start_offset = 5

    services, _ = with_reader(story, before=expire)
    land(story, services)
    [kept] = samples(story)
    assert kept["offsets"] == 5
    assert recorded(story) == []


def test_a_row_that_is_served_no_more_is_a_difference_where_nothing_is_cleaned(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 10)
    land(story)
    log.entries[4].kind = Kind.COMPACTED
    assert differing(looked(story).findings) == [(LOSS, 1, 0, 0, 10)]


@pytest.mark.parametrize("is_still", [True, False], ids=["now", "in an earlier look"])
def test_what_was_cleaned_is_no_difference_also_when_nothing_is_cleaned_any_more(
    story: Story, log: Log, is_still: bool
) -> None:
    story.broker.is_compacted = True
    log.append(Kind.RECORD, 10)
    land(story)
    log.entries[4].kind = Kind.COMPACTED
    story.broker.is_compacted = is_still

    report = looked(story)

    assert differing(report.findings) == []
    assert report.verdict is Verdict.PROVEN_OK


def test_what_was_appended_under_another_policy_no_cleaner_of_before_has_removed(
    story: Story, log: Log
) -> None:
    story.broker.is_compacted = True
    log.append(Kind.RECORD, 10)
    land(story)
    story.broker.is_compacted = False
    land(story)
    log.append(Kind.RECORD, 10)
    land(story)
    log.entries[14].kind = Kind.COMPACTED
    assert differing(looked(story).findings) == [(LOSS, 1, 0, 10, 20)]

    log.append(Kind.RECORD, 10)
    log.entries[24].kind = Kind.COMPACTED
    services = story.services()
    [error] = land_feed(services, None, Owner("one")).errors
    assert "no cause is proven: 24" in str(error)


def test_holes_of_a_cleaner_are_proven_also_when_nothing_is_cleaned_any_more(
    story: Story, log: Log
) -> None:
    story.broker.is_compacted = True
    land(story)
    log.append(Kind.RECORD, 10)
    log.entries[4].kind = Kind.COMPACTED
    story.broker.is_compacted = False

    land(story)

    assert story.published_offsets() == {0: [each for each in range(10) if each != 4]}
    assert looked(story).verdict is Verdict.PROVEN_OK


def test_markers_and_aborted_records_are_nothing_on_both_sides(story: Story, log: Log) -> None:
    for kind, count in ((Kind.RECORD, 5), (Kind.ABORTED, 3), (Kind.CONTROL, 1), (Kind.RECORD, 4)):
        log.append(kind, count)
    log.append(Kind.CONTROL, 1)
    land(story)
    report = looked(story)
    assert report.verdict is Verdict.PROVEN_OK
    assert report.second_read is not None
    assert (report.second_read.offsets, report.second_read.batches) == (14, 1)
    assert report.levels == tuple(Level)


def test_a_record_that_the_broker_shows_and_nobody_landed_is_a_loss(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 5)
    log.append(Kind.ABORTED, 3)
    land(story)
    log.entries[6].kind = Kind.RECORD
    assert differing(looked(story).findings) == [(LOSS, 1, 0, 0, 8)]
    [stored] = story.services().ledger.findings(FEED)
    [only] = stored.finding.evidence["records"]  # type: ignore[misc]
    assert (only["offset"], only["landed"], only["served"]["value"]) == (6, None, "b'v6'")


def test_a_committed_row_that_differs_is_a_loss_until_it_is_equal_again(
    story: Story, log: Log
) -> None:
    log.append(Kind.RECORD, 10)
    land(story)
    before = log.entries[8]
    rewritten(log, 8)

    first = looked(story)
    assert differing(first.findings) == [(LOSS, 1, 0, 0, 10)]
    assert first.verdict is LOSS
    assert differing(looked(story).findings) == [(LOSS, 1, 0, 0, 10)]
    assert len(recorded(story)) == 1

    assert reconcile(story.services(), Level.L3).verdict is LOSS, "who does not look ends nothing"
    log.entries[8] = before
    assert looked(story).verdict is Verdict.PROVEN_OK
    assert recorded(story) == []


def test_a_repair_lands_the_logs_own_records_in_place_of_the_others(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)
    land(story)
    rewritten(log, 3)
    looked(story)
    [number] = [each.finding_id for each in story.services().ledger.findings(FEED)]

    repair_feed(story.services(), [number], OWNER)

    assert recorded(story) == []
    assert looked(story).verdict is Verdict.PROVEN_OK
    assert story.published_offsets() == {0: list(range(10))}


def a_waived_difference(story: Story, log: Log) -> None:
    """The first of so many records that no two samples read the same ones, but for the ends."""
    log.append(Kind.RECORD, 100_000)
    land(story)
    rewritten(log, 0)
    looked(story, second_reader=2_000)
    [stored] = story.services().ledger.findings(FEED)
    accept(story.services().ledger, stored.finding_id)


def test_what_is_accepted_stays_accepted_while_other_samples_are_equal(
    story: Story, log: Log
) -> None:
    a_waived_difference(story, log)
    for _ in range(3):
        assert looked(story, second_reader=2_000).verdict is Verdict.WAIVED
    log.log_start_offset = 1
    assert looked(story, second_reader=2_000).verdict is Verdict.WAIVED, "nobody can ask any more"


@pytest.mark.parametrize(
    "worse",
    [
        lambda log: rewritten(log, *range(1_000, 99_000)),
        lambda log: rewritten(log, 1),
        lambda log: log.entries.__setitem__(0, replace(log.entries[0], value=b"a third one")),
    ],
    ids=["in another sample", "beside it", "in another way"],
)
def test_what_differs_beside_what_is_accepted_is_not_accepted(
    story: Story, log: Log, worse: Callable[[Log], None]
) -> None:
    a_waived_difference(story, log)
    worse(log)
    assert looked(story, second_reader=2_000).verdict is LOSS


def test_batches_come_round_oldest_look_first_within_the_budget(story: Story, log: Log) -> None:
    for _ in range(4):
        log.append(Kind.RECORD, 3_000)
        land(story)
    seen: list[list[int]] = []
    for _ in range(4):
        services, reader = with_reader(story)
        report = looked(story, services, second_reader=2_000)
        assert report.second_read is not None
        assert (report.second_read.batches, report.second_read.left_due) == (1, 3)
        seen.append(sorted({each.from_offset // 3_000 for each in reader.seen}))
        assert 1_000 <= report.second_read.offsets <= 2_000
    assert seen == [[0], [1], [2], [3]]


def test_another_turn_reads_other_slices_of_the_same_batch(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 50_000)
    land(story)
    services, first = with_reader(story)
    looked(story, services, second_reader=2_000)
    services, second = with_reader(story)
    looked(story, services, second_reader=2_000)
    assert first.seen != second.seen
    for reader in (first, second):
        assert (reader.seen[0].from_offset, reader.seen[-1].until_offset) == (0, 50_000)
    assert [each["turn"] for each in samples(story)] == [0, 1, 2]


def test_only_what_the_broker_still_has_is_compared(story: Story, log: Log) -> None:
    for _ in range(2):
        log.append(Kind.RECORD, 10)
        land(story)
    log.log_start_offset = 15
    services, reader = with_reader(story)
    report = looked(story, services)
    assert report.second_read is not None
    assert [(each.from_offset, each.until_offset) for each in reader.seen] == [(15, 20)]
    assert (report.second_read.batches, report.second_read.left_due) == (1, 0)


def test_a_silent_broker_is_unknown_and_ends_nothing(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)
    land(story)
    rewritten(log, 3)
    looked(story)

    services, _ = with_reader(story, before=unheard)
    report = looked(story, services)

    assert not report.is_complete
    told = {(each.code, each.level) for each in report.findings if each.verdict is UNKNOWN}
    assert told == {(FindingCode.COULD_NOT_TELL, Level.L4)}
    assert recorded(story) == [(LOSS, 1, 0, 0, 10)]


def test_off_is_off(story: Story, log: Log) -> None:
    log.append(Kind.RECORD, 10)
    services = replace(story.services(), second_reader=None)
    land(story, services)
    report = reconcile(services, Level.L4)
    assert report.second_read is None
    assert Level.L4 not in report.levels
    assert samples(story) == []


def without_the_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks if a log is still the one that was seen is told that it is."""

    def all_the_same(
        services: Services, snapshot: BrokerSnapshot, accounts: Iterable[GenerationAccount]
    ) -> Mapping[int, LogCheck]:
        return {each.partition.partition: SAME for each in accounts}

    for asking in (landing, proving, observing, second_reading):
        monkeypatch.setattr(asking, "checked_logs", all_the_same)


@pytest.mark.parametrize("cut_at", [40, 45, 49])
def test_a_log_cut_between_plan_and_commit_is_found_by_the_second_reader_alone(
    story: Story, log: Log, monkeypatch: pytest.MonkeyPatch, cut_at: int
) -> None:
    """Rows of the dead log are in files, the records of the new one in none."""
    log.append(Kind.RECORD, 50)
    land(story)
    log.append(Kind.RECORD, 50)
    services = story.services(lease=timedelta(minutes=1))
    [batch] = plan_feed(services, None, OWNER).batches
    log.cut(cut_at)
    log.append(Kind.RECORD, 200, value=b"NEW-LOG-")
    without_the_witness(monkeypatch)
    attempt = land_batch(services, batch.batch_id, AttemptId("1" * 16), OWNER)
    assert attempt is not None
    verify_and_commit(services, attempt)
    publish(services, batch.batch_id)
    land(story)
    assert reconcile(story.services(), Level.L3).verdict is Verdict.PROVEN_OK, "nobody else sees it"

    report = looked(story)

    assert report.verdict is LOSS
    assert differing(report.findings) == [(LOSS, 1, 0, 0, 50)]
    [found] = [each for each in report.findings if each.code is C3]
    assert f"{50 - cut_at} of 50 compared offsets differ" in found.cause
