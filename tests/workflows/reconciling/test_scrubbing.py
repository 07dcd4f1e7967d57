"""The rotating scrub: what is due, what is found, and that trouble is never told as a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.paths import ScrubPath
from tallystick.domain.identities import Owner
from tallystick.domain.rows.scrub import ReadFile, ScrubResult
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ConfigurationError, ScrubFailed, StorageUnavailable
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.scrubbing import ScrubReport, scrub
from tallystick.workflows.services import Services
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("test")
Change = Callable[[pa.Table], pa.Table]


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two batches of one partition: [0, 10), with a marker at its end, and [10, 20)."""
    broker = ScriptedBroker("orders", partitions=1)
    story = Story(ledger_databases(), tmp_path, broker)
    for kinds in ([Kind.RECORD] * 9 + [Kind.CONTROL], [Kind.RECORD] * 10):
        for kind in kinds:
            broker.logs[0].append(kind, 1)
        land(story)
    return story


def land(story: Story) -> None:
    report = land_feed(story.services(), None, OWNER)
    assert not report.errors


def files(story: Story) -> list[Path]:
    """The published files, by their smallest offset."""
    found = (story.directory / "landing" / FEED).rglob("*.parquet")
    return sorted(found, key=lambda each: pq.read_table(each)["offset"].to_pylist()[0])


def rewrite(path: Path, change: Change) -> None:
    table = pq.read_table(path, partitioning=None)
    pq.write_table(change(table), path)


def told(findings: Sequence[Finding], level: Level = Level.L3) -> list[tuple[Any, ...]]:
    assert all(each.level is level for each in findings)
    return [
        (each.code.value, each.verdict.value, each.partition, each.from_offset, each.until_offset)
        for each in findings
    ]


def recorded(story: Story) -> list[tuple[Any, ...]]:
    return told([each.finding for each in story.services().ledger.findings(FEED)])


def scrubbed(story: Story, **settings: Any) -> ScrubReport:
    return scrub(with_settings(story.services(), **settings))


def with_settings(services: Services, **settings: Any) -> Services:
    feed = services.feed
    changed = feed.reconcile.model_copy(update=settings)
    return replace(services, feed=feed.model_copy(update={"reconcile": changed}))


@dataclass
class Runner:
    """Spark, with something happening before a scrub, or before its result is read."""

    services: Services
    before: Callable[[], None] = lambda: None
    after: Callable[[ScrubOrder], None] = lambda order: None
    seen: list[ScrubOrder] = field(default_factory=list)

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        self.services.spark.run(order, started=started)

    def scrub(self, order: ScrubOrder) -> ScrubResult:
        self.seen.append(order)
        self.before()

        def written() -> ScrubResult:
            self.after(order)
            return order.written()

        return self.services.spark.scrub(replace(order, written=written))


def a_week_goes_by(story: Story) -> None:
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE batch_check DISABLE TRIGGER batch_check_append_only")
        hand.execute("UPDATE batch_check SET checked_at = checked_at - interval '8 days'")
        hand.execute("ALTER TABLE batch_check ENABLE TRIGGER batch_check_append_only")


def swapped(table: pa.Table) -> pa.Table:
    """The first two values have changed places; every count, offset and byte sum is the same."""
    values = table["value"].to_pylist()
    values[:2] = reversed(values[:2])
    place = table.schema.get_field_index("value")
    return table.set_column(place, "value", pa.array(values, pa.binary()))


def test_the_first_scrub_takes_fingerprints_and_the_next_one_compares(story: Story) -> None:
    first = scrubbed(story)
    assert (first.findings, first.unheard, first.taken) == ([], [], 2)
    assert list(first.checked.values()) == [True, True]
    assert (first.left_due, first.standing.never_read, first.standing.batches) == (0, 0, 2)

    assert scrubbed(story).checked == {}, "nothing is due"

    a_week_goes_by(story)
    again = scrubbed(story)
    assert (again.findings, again.taken, len(again.checked)) == ([], 0, 2)


def test_changed_content_is_named_with_its_slice_until_it_is_as_it_was(story: Story) -> None:
    scrubbed(story)
    a_week_goes_by(story)
    original = files(story)[0].read_bytes()
    rewrite(files(story)[0], swapped)

    report = scrubbed(story)

    assert told(report.findings) == [("C1", "PROVEN_LOSS", 0, 0, 9)]
    assert recorded(story) == told(report.findings)
    assert sorted(report.checked.values()) == [False, True]
    files(story)[0].write_bytes(original)
    after = scrubbed(story)  # what was not clean is due at once
    assert (after.findings, list(after.checked.values())) == ([], [True])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda table: table.take([0, 1, 2, 4, 5, 8]),
            [("A8", "PROVEN_LOSS", 0, 3, 4), ("A8", "PROVEN_LOSS", 0, 6, 8)],
        ),
        (
            lambda table: table.take([0, 1, 1, 2, 3, 4, 5, 6, 7, 8]),
            [("B2", "PROVEN_DUP", 0, 1, 2)],
        ),
        (  # one lost, one doubled: the count is right
            lambda table: table.take([0, 1, 1, 3, 4, 5, 6, 7, 8]),
            [("A8", "PROVEN_LOSS", 0, 2, 3), ("B2", "PROVEN_DUP", 0, 1, 2)],
        ),
    ],
    ids=["missing", "doubled", "both"],
)
def test_offsets_are_named_exactly_at_the_very_first_scrub(
    story: Story, change: Change, expected: list[tuple[Any, ...]]
) -> None:
    rewrite(files(story)[0], change)
    report = scrubbed(story)
    assert told(report.findings) == expected
    assert report.taken == 1, "nothing is taken of what is wrong"


def test_one_unreadable_file_is_named_and_hides_no_other(story: Story) -> None:
    content = bytearray(files(story)[0].read_bytes())
    content[-4:] = b"XXXX"
    first, second = files(story)
    first.write_bytes(content)
    rewrite(second, lambda table: table.slice(1))

    report = scrubbed(story)

    assert told(report.findings) == [
        ("C1", "PROVEN_LOSS", 0, 0, 9),
        ("A8", "PROVEN_LOSS", 0, 10, 11),
    ]
    assert first.name == report.findings[0].evidence["file"]
    assert list(report.checked.values()) == [False, False]


def test_a_missing_file_is_a_committed_file_missing(story: Story) -> None:
    files(story)[1].unlink()
    found = scrubbed(story).findings
    assert told(found, Level.L2) == [("A8", "UNKNOWN", 0, 10, 20)], "it may lie elsewhere"
    for _ in range(2):
        reconcile(story.services(), Level.L3)
        on_record = [each.finding for each in story.services().ledger.findings(FEED)]
        assert [each.key for each in on_record] == [found[0].key], "a listing tells the same"
        assert told(on_record, Level.L2) == [("A8", "PROVEN_LOSS", 0, 10, 20)]


def test_the_budget_is_kept_and_all_come_round(story: Story) -> None:
    first, second = (each.stat().st_size for each in files(story))
    one = scrubbed(story, scrub_budget=first + second - 1)
    assert (one.read_bytes, len(one.checked), one.left_due) == (first, 1, 1)
    assert one.standing.never_read == 1

    other = scrubbed(story, scrub_budget=1)
    assert (other.read_bytes, len(other.checked), other.left_due) == (second, 1, 0)
    assert not set(one.checked) & set(other.checked)


def test_only_published_batches_are_read(story: Story) -> None:
    services = story.services()
    scrubbed(story)
    story.broker.logs[0].append(Kind.RECORD, 5)
    land_feed(unable_to_publish(story.services()), None, OWNER)
    assert len(services.ledger.unpublished(FEED)) == 1
    assert scrubbed(story).checked == {}


def unable_to_publish(services: Services) -> Services:
    store: Any = services.store
    rename = store._port.rename_exclusive

    def refuse(source: str, target: str) -> None:
        if "batch=" in target:
            raise StorageUnavailable(target, f"{source} can't be moved")
        rename(source, target)

    store._port.rename_exclusive = refuse
    return services


@pytest.mark.parametrize(
    "error",
    [
        ScrubFailed("s", "local-1", "no executor was given"),
        StorageUnavailable("/landing", "in safe mode"),
        ConfigurationError("spark.speculation", "true", "false", where="server sc://h:1"),
    ],
)
def test_a_witness_that_does_not_answer_is_unknown_and_everything_stays_due(
    story: Story, error: Exception
) -> None:
    def fail() -> None:
        raise error

    services = story.services()
    report = scrub(replace(services, spark=Runner(services, before=fail)))

    assert told(report.unheard) == [("U1", "UNKNOWN", None, None, None)]
    assert str(error.args[-1]) in report.unheard[0].cause
    assert (report.findings, report.checked, report.left_due) == ([], {}, 2)
    assert not report.is_complete
    assert recorded(story) == []
    assert len(scrubbed(story).checked) == 2


@pytest.mark.parametrize("left", ["nothing", "another text", "two files"])
def test_half_a_result_is_none(story: Story, left: str) -> None:
    services = story.services()

    def spoil(order: ScrubOrder) -> None:
        directory = f"/landing/_scrub/{FEED}/{order.scrub_id}/result"
        [part] = services.store.entries(directory)
        match left:
            case "nothing":
                services.store.write(f"{directory}/{part.name}", b"")
            case "another text":
                services.store.write(f"{directory}/{part.name}", b'{"format":')
            case _:
                services.store.write(f"{directory}/part-00001.txt", b"{}")

    report = scrub(replace(services, spark=Runner(services, after=spoil)))
    assert [each.verdict for each in report.unheard] == [Verdict.UNKNOWN]
    assert report.checked == {}


def test_a_scrub_leaves_nothing_behind_and_sweeps_what_a_killed_one_left(story: Story) -> None:
    services = story.services()
    now, place = services.clock.now(), f"/landing/_scrub/{FEED}"
    old, young = (
        ScrubPath.new("/landing", FEED, now - age, "0" * 16)
        for age in (timedelta(days=3), timedelta(hours=1))
    )
    for each in (old, young):
        services.store.write(each.plan, b"{}")
    services.store.write(f"{place}/kept.txt", b"by somebody else")

    scrub(services)

    assert [each.name for each in services.store.entries(place)] == [young.scrub_id, "kept.txt"]


def test_a_file_that_a_repair_retracts_meanwhile_is_no_finding(story: Story) -> None:
    services = story.services()
    damaged = files(story)[1]
    rewrite(damaged, lambda table: table.take([0]))

    def repaired() -> None:
        with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
            hand.execute("ALTER TABLE file_retraction DISABLE TRIGGER file_retraction_of_repair")
            hand.execute(
                "INSERT INTO file_retraction (batch_id, name, replaced_by)"
                " SELECT batch_id, name, batch_id FROM file WHERE name = %s",
                [damaged.name],
            )

    report = scrub(replace(services, spark=Runner(services, after=lambda _: repaired())))

    assert (report.findings, report.unheard) == ([], [])
    assert recorded(story) == []


def test_a_scrub_that_dies_before_its_checks_are_on_record_is_repeated(story: Story) -> None:
    rewrite(files(story)[0], lambda table: table.slice(0, 8))
    services = story.services()
    ledger: Any = services.ledger._port  # type: ignore[attr-defined]

    def die(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    ledger.record_scrub = die
    with pytest.raises(KeyboardInterrupt):
        scrub(services)

    assert recorded(story) == [("A8", "PROVEN_LOSS", 0, 8, 9)]
    assert told(scrubbed(story).findings) == recorded(story)


def test_a_batch_that_can_never_be_read_keeps_no_other_from_its_turn(story: Story) -> None:
    sick, _ = files(story)
    for _ in range(4):
        services = with_settings(story.services(), scrub_budget=1)

        def spoil(order: ScrubOrder) -> None:
            [path] = story.directory.rglob(f"{order.scrub_id}/result/part-*")
            result = ScrubResult.from_json(path.read_text())
            if result.files[0].name == sick.name:
                unread = ReadFile(sick.name, failure="no DataNode has its block")
                path.write_text(replace(result, files=(unread,)).to_json())

        scrub(replace(services, spark=Runner(services, after=spoil)))
    standing = story.services().ledger.scrub_standing(FEED)
    assert (standing.batches, standing.never_read) == (2, 1)


def test_a_batch_that_ends_every_scrub_keeps_no_other_from_its_turn(story: Story) -> None:
    sick, _ = files(story)
    for _ in range(4):
        services = with_settings(story.services(), scrub_budget=1)

        def die(order: ScrubOrder) -> None:
            [plan] = story.directory.rglob(f"{order.scrub_id}/scrub.json")
            if sick.name in plan.read_text():
                raise ScrubFailed("s", "local-1", "out of memory")

        scrub(replace(services, spark=Runner(services, after=die)))
    standing = story.services().ledger.scrub_standing(FEED)
    assert (standing.batches, standing.never_read) == (2, 1)
