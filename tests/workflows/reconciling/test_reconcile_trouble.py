"""Reconcile beside a run, and after trouble: no false alarm, no trouble forgotten, none doubled."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import StorageUnavailable
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.checking import check
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out, land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.ledger_server import OWNER_ROLE
from tests.support.local_directory import LocalFileStore
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER, OTHER, LATER = Owner("one"), Owner("other"), Owner("later")
FIRST = AttemptId("1" * 16)
LONG = timedelta(seconds=60)
LOSS, UNKNOWN = Verdict.PROVEN_LOSS, Verdict.UNKNOWN


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


NOT_SHOWN = ("N3", UNKNOWN, None, None, None)


def committed(services: Services, window: Window | None = None) -> BatchId:
    """A batch that its run has committed and not published yet."""
    batch_id = plan_feed(services, window, OWNER).batches[0].batch_id
    attempt = land_batch(services, batch_id, FIRST, OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    return batch_id


def failing(findings: Iterable[Finding]) -> list[str]:
    return [str(each) for each in findings if each.verdict in FAILING_VERDICTS]


def told(findings: Iterable[Finding]) -> set[tuple[object, ...]]:
    return {
        (each.code.value, each.verdict, each.partition, each.from_offset, each.until_offset)
        for each in findings
    }


def an_hour_and_more_goes_by(story: Story) -> None:
    """Everything in the ledger is 61 minutes older."""
    older = "- interval '61 minutes'"
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        for guarded in ("batch", "attempt"):
            hand.execute(f"ALTER TABLE {guarded} DISABLE TRIGGER {guarded}_guard".encode())
        hand.execute(
            f"UPDATE batch SET planned_at = planned_at {older},"
            f" lease_until = lease_until {older}, committed_at = committed_at {older}".encode()
        )
        hand.execute(f"UPDATE attempt SET ended_at = ended_at {older}".encode())
        for guarded in ("batch", "attempt"):
            hand.execute(f"ALTER TABLE {guarded} ENABLE TRIGGER {guarded}_guard".encode())


def published_file(story: Story) -> Path:
    [file] = (story.directory / "landing" / FEED).rglob("*.parquet")
    return file


# Beside a run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", range(1, 13))
def test_a_run_beside_it_is_no_alarm_whenever_it_lands(story: Story, call: int) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 5)
    services = story.services()
    ledger = Meanwhile(services.ledger, lambda: land_feed(story.services(), None, OTHER), call=call)
    report = reconcile(replace(services, ledger=ledger))  # type: ignore[arg-type]
    assert failing(report.findings) == []


def test_a_feeds_first_run_beside_it_is_no_alarm(story: Story) -> None:
    services = story.services()
    ledger = Meanwhile(
        services.ledger, lambda: land_feed(story.services(), None, OTHER), method="accounts"
    )
    report = reconcile(replace(services, ledger=ledger))  # type: ignore[arg-type]
    assert failing(report.findings) == []


def test_what_expires_after_it_was_landed_beside_it_is_no_loss(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 10)

    def landed_and_expired() -> None:
        land_feed(story.services(), None, OTHER)
        story.broker.logs[0].append(Kind.RECORD, 1)
        story.broker.logs[0].log_start_offset = 20

    services = story.services()
    ledger = Meanwhile(services.ledger, landed_and_expired, method="accounts")
    report = reconcile(replace(services, ledger=ledger))  # type: ignore[arg-type]
    assert failing(report.findings) == []


@pytest.mark.parametrize("call", range(1, 13))
def test_a_rename_beside_it_is_no_loss_whenever_it_comes(story: Story, call: int) -> None:
    services = story.services(lease=LONG)  # it is on its way
    batch_id = committed(services)
    store = Meanwhile(services.store, lambda: publish(story.services(), batch_id), call=call)
    report = reconcile(replace(services, store=store))  # type: ignore[arg-type]
    assert failing(report.findings) == []


def test_between_commit_and_publishing_is_no_alarm(story: Story) -> None:
    services = story.services(lease=LONG)
    plan = plan_feed(services, None, OWNER)
    batch_id = plan.batches[0].batch_id
    attempt = land_batch(services, batch_id, FIRST, OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    report = reconcile(story.services())
    publish(services, batch_id)
    assert failing(report.findings) == []
    assert check(services, plan.planned_at, OWNER) == []


def test_a_batch_that_waits_for_its_turn_is_no_alarm(story: Story) -> None:
    services = story.services(max_records_per_batch=5)  # without a lease: it is over at once
    plan = plan_feed(services, None, OWNER)
    report = reconcile(story.services())
    for each in plan.all_batches:
        assert not carry_out(services, each.batch_id, OWNER).error
    assert failing(report.findings) == []
    assert check(services, plan.planned_at, OWNER) == []


def test_what_waits_for_more_than_an_hour_was_left_behind(story: Story) -> None:
    services = story.services(max_records_per_batch=10)
    waiting, hidden = (each.batch_id for each in plan_feed(services, None, OWNER).batches)
    attempt = land_batch(services, hidden, FIRST, OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    an_hour_and_more_goes_by(story)
    found = reconcile(story.services()).findings
    assert {each.code for each in found} == {FindingCode.UNFINISHED_BATCH}
    assert {each.subject for each in found} == {waiting, hidden}
    assert {each.cause.split(", and ")[1] for each in found} == {
        "for 1.0 h nobody has held it.",
        "readers of the directories don't see its rows: nobody has published it.",
    }


def test_what_a_reconcile_finds_fails_no_run(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    file = published_file(story)
    services = story.services()
    plan = plan_feed(services, None, OWNER)
    (file.parent / "stray.parquet").write_bytes(file.read_bytes()[:-1])
    file.unlink()
    found = {each.code.value for each in reconcile(story.services()).findings}
    assert found == {"A8", "A9"}
    assert check(services, plan.planned_at, OWNER) == []


def test_a_loss_that_a_reconcile_has_recorded_fails_no_run(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].append(Kind.RECORD, 10)
    story.broker.logs[0].log_start_offset = 15
    expected = {("A1", LOSS, 0, 10, 15)}
    assert told(reconcile(story.services()).findings) == expected
    assert told(land_feed(story.services(), None, LATER).findings) == set()
    assert told(reconcile(story.services()).findings) == expected


# What lasts ---------------------------------------------------------------------------------------


def test_a_truncated_partition_keeps_its_interval(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].cut(6)
    told_by_runs = [told(land_feed(story.services(), None, OWNER).findings)]
    told_by_reconcile = []
    for count in (2, 20):
        story.broker.logs[0].append(Kind.RECORD, count)
        told_by_reconcile.append(told(reconcile(story.services()).findings))
        told_by_runs.append(told(land_feed(story.services(), None, OWNER).findings))
    expected = {("A3", LOSS, 0, 6, 10)}
    assert told_by_runs == [expected] * 3
    assert told_by_reconcile == [expected] * 2
    assert len(story.services().ledger.findings(FEED)) == 1


def test_a_new_generation_ends_the_alarm_of_a_stopped_one(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.logs[0].cut(6)
    land_feed(story.services(), None, OWNER)
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute(
            "INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal,"
            " first_offset, frontier, last_seen_until, opening_reason)"
            " SELECT feed, topic, partition, cluster_id, topic_id, 2, 6, 6, 6, 'by hand'"
            " FROM generation WHERE state = 'stopped'"
        )
    story.broker.logs[0].append(Kind.RECORD, 20)
    assert land_feed(story.services(), None, OWNER).findings == []
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_the_unknown_tail_of_a_recreated_topic_stays_unknown(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    story.broker.recreate()
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3)
    land_feed(story.services(), None, OWNER)
    later = land_feed(story.services(), None, LATER)
    assert later.findings == [], "an old re-creation does not fail every later run"
    report = reconcile(story.services())
    assert told(report.findings) == {("A5", UNKNOWN, partition, None, None) for partition in (0, 1)}
    assert [each.verdict for each in report.partitions] == [UNKNOWN, UNKNOWN]
    assert report.verdict is UNKNOWN


def test_two_strays_are_two_findings_on_record(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    file = published_file(story)
    for name in ("a.parquet", "b.parquet"):
        (file.parent / name).write_bytes(file.read_bytes())
    for _ in range(2):
        report = reconcile(story.services())
    recorded = [each.finding for each in story.services().ledger.findings(FEED)]
    strays = [each for each in report.findings if each.code is FindingCode.STRAY_FILE]
    assert len(strays) == 2
    assert {each.key for each in report.findings} == {each.key for each in recorded}
    assert {each.subject.rsplit("/")[-1] for each in recorded} == {"a.parquet", "b.parquet"}


def test_a_suspicion_is_a_finding(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    assert not reconcile(story.services()).has_failed
    (published_file(story).parent / "copy.parquet").write_bytes(b"")
    report = reconcile(story.services())
    assert [each.verdict for each in report.findings] == [Verdict.SUSPECTED]
    assert report.has_failed


# What is not where it should be -------------------------------------------------------------------


def test_a_committed_batch_that_is_nowhere_is_said_and_stops_nobody(story: Story) -> None:
    committed(story.services())
    shutil.rmtree(story.directory / "landing" / "_staging")
    expected = {NOT_SHOWN, ("A8", LOSS, 0, 0, 10), ("A8", LOSS, 1, 0, 10)}
    assert told(reconcile(story.services()).findings) == expected
    story.broker.logs[0].append(Kind.RECORD, 5)
    report = land_feed(story.services(), None, OTHER)
    assert [type(each).__name__ for each in report.errors] == ["PublishedDataMissing"]
    assert story.published_offsets() == {0: list(range(10, 15))}
    assert told(reconcile(story.services()).findings) == expected


def test_a_committed_batch_that_is_nowhere_does_not_keep_its_windows_plan_open(
    story: Story,
) -> None:
    start = NOW.replace(minute=0)
    window = Window(start, start + timedelta(hours=1))
    committed(story.services(), window)
    shutil.rmtree(story.directory / "landing" / "_staging")
    story.broker.logs[0].append(Kind.RECORD, 5)
    land_feed(story.services(), window, OTHER)
    assert story.published_offsets() == {0: list(range(10, 15))}


def test_a_committed_file_that_changes_in_staging_is_said(story: Story) -> None:
    committed(story.services())
    [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    found = reconcile(story.services()).findings
    assert told(found) == {NOT_SHOWN, ("C1", LOSS, 0, 0, 10), ("C1", LOSS, 1, 0, 10)}
    assert all("/_staging/" in each.cause for each in found if each.verdict is LOSS)


def test_a_directory_in_the_way_of_a_batch_is_no_loss_of_it(story: Story) -> None:
    services = story.services()
    batch_id = committed(services)
    target = Path(f"{story.directory}{publish(services, batch_id)}")
    [staging] = (story.directory / "landing" / "_staging").rglob(FIRST)
    target.rename(staging / "data")
    target.mkdir()
    (target / "foreign.parquet").write_bytes(b"x")
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        hand.execute("ALTER TABLE batch DISABLE TRIGGER USER")
        hand.execute("UPDATE batch SET state = 'committed', published_at = NULL")
        hand.execute("ALTER TABLE batch ENABLE TRIGGER USER")
    found = {each.code for each in reconcile(story.services()).findings}
    assert found == {FindingCode.STRAY_FILE, FindingCode.UNFINISHED_BATCH}


def test_a_copied_batch_directory_is_a_stray_not_a_ledger_behind(story: Story) -> None:
    land_feed(story.services(), None, OWNER)
    directory = published_file(story).parent
    shutil.copytree(directory, directory.parent.parent / "hour=23" / directory.name)
    found = reconcile(story.services()).findings
    assert {each.code for each in found} == {FindingCode.STRAY_FILE, FindingCode.LANDED_TWICE}
    assert all(str(directory.name) in each.subject for each in found)


@pytest.mark.parametrize("kind", [Kind.RECORD, Kind.CONTROL], ids=["rows", "holes only"])
def test_a_published_batch_that_the_ledger_never_heard_of_is_a_ledger_behind(
    story: Story, ledger_databases: Callable[[], str], kind: Kind
) -> None:
    story.broker.logs = {0: type(story.broker.logs[0])()}
    story.broker.logs[0].append(kind, 3)
    land_feed(story.services(), None, OWNER)
    forgotten = replace(story, dsn=ledger_databases())
    found = [
        each
        for each in reconcile(forgotten.services()).findings
        if each.code is FindingCode.LEDGER_BEHIND
    ]
    assert [each.subject.split("/batch=")[0] for each in found] == [
        "/landing/orders/gen=1/dt=2026-11-01/hour=12"
    ]


def test_one_file_that_cannot_be_read_hides_no_other_loss(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost block in the first batch; in the second, a file is gone."""
    land_feed(story.services(), None, OWNER)
    sick = published_file(story)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    land_feed(story.services(), None, OWNER)
    [gone] = [each for each in sick.parents[2].rglob("*.parquet") if each != sick]
    gone.unlink()
    really = LocalFileStore.checksum

    def checksum(store: LocalFileStore, path: str) -> str:
        if path.endswith(sick.name):
            raise StorageUnavailable(path, "BlockMissingException: could not obtain block")
        return really(store, path)

    monkeypatch.setattr(LocalFileStore, "checksum", checksum)
    found = reconcile(story.services()).findings
    assert told(found) == {
        ("A8", LOSS, 0, 10, 15),
        ("A8", LOSS, 1, 10, 15),
        ("U1", UNKNOWN, 0, 0, 10),
        ("U1", UNKNOWN, 1, 0, 10),
    }
    stored = story.services().ledger.findings(FEED)
    silent = {e.finding_id for e in stored if e.finding.code is FindingCode.COULD_NOT_TELL}
    report = repair_feed(story.services(), {*story.named()} - silent, OWNER)
    assert report.plan.not_mended == ()
    named = [each.finding_id for each in story.services().ledger.findings(FEED)]
    repair_feed(story.services(), named, OWNER)
    assert reconcile(story.services()).findings == ()
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}
