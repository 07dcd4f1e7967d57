"""The root of one feed inside another feed's directory: told by name, never moved as a stray."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from secrets import token_hex

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ConfigurationError, StorageRefused
from tallystick.settings.feed import Feed
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tallystick.workflows.services import Services
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

INNER = "/landing/orders/payments"


@pytest.fixture
def outer(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Feed orders, which lands below /landing/orders, and has not yet."""
    return a_landed_story(ledger_databases(), tmp_path)


@pytest.fixture(params=["one ledger", "two ledgers"])
def inner(
    request: pytest.FixtureRequest, outer: Story, ledger_databases: Callable[[], str]
) -> Story:
    """Where feed payments keeps its ledger: it has landed below /landing/orders before feed orders
    did, so nobody could refuse it.
    """
    dsn = outer.dsn if request.param == "one ledger" else ledger_databases()
    story = Story(dsn, outer.directory, outer.broker)
    for log in outer.broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(payments(story), None, owner())
    land_feed(outer.services(), None, owner())
    return story


def payments(story: Story) -> Services:
    feed = Feed.model_validate(
        {
            "feed": "payments",
            "source": {"topic": "orders"},
            "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
            "target": {"root": "/landing/orders"},
        }
    )
    return replace(story.services(), feed=feed)


def owner() -> Owner:
    return Owner(token_hex(4))


def files(story: Story) -> list[Path]:
    return sorted((story.directory / INNER.strip("/")).rglob("*.parquet"))


def test_another_feeds_directory_is_told_as_such(outer: Story, inner: Story) -> None:
    assert files(outer)

    [told] = reconcile(outer.services()).findings

    assert (told.code, told.verdict) == (FindingCode.STRAY_FILE, Verdict.SUSPECTED)
    assert (told.subject, told.evidence["other_feed"]) == (INNER, "payments")
    assert "feed payments lands in /landing/orders/payments" in told.cause
    assert reconcile(payments(inner)).findings == ()
    assert land_feed(outer.services(), None, owner()).errors == ()


def test_a_look_that_may_not_read_the_other_feeds_manifest_ends_nothing(
    outer: Story, inner: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconcile(outer.services())
    [before] = outer.services().ledger.findings(FEED)
    really = LocalFileStore.read

    def refused(store: LocalFileStore, path: str) -> bytes:
        if path.startswith(INNER):
            raise StorageRefused(path, "no permission")
        return really(store, path)

    monkeypatch.setattr(LocalFileStore, "read", refused)
    reconcile(outer.services())
    standing = [each.finding_id for each in outer.services().ledger.findings(FEED)]
    assert before.finding_id in standing


def test_no_repair_moves_what_another_feed_has_landed(outer: Story, inner: Story) -> None:
    before = files(outer)
    reconcile(outer.services())

    [left] = dry_repair(outer.services(), ()).plan.not_mended
    assert "no repair of this feed moves it" in left.reason
    report = repair_feed(outer.services(), (), owner())

    assert (list(report.quarantined), report.errors) == ([], ())
    assert files(outer) == before
    assert reconcile(payments(inner)).verdict is Verdict.PROVEN_OK


def test_a_file_that_was_called_a_stray_before_stays_where_its_feed_landed_it(
    outer: Story, inner: Story
) -> None:
    """Its manifest was not there to be read when the finding was made."""
    before = files(outer)
    [manifest] = [each.parent / "_tally.json" for each in before[:1]]
    kept = manifest.read_bytes()
    manifest.unlink()
    assert FindingCode.STRAY_FILE in {each.code for each in reconcile(outer.services()).findings}
    manifest.write_bytes(kept)

    report = repair_feed(outer.services(), (), owner())

    assert not report.quarantined
    assert files(outer) == before


def test_the_finding_ends_when_the_other_feed_has_left(outer: Story, inner: Story) -> None:
    reconcile(outer.services())
    (outer.directory / INNER.strip("/")).rename(outer.directory / "landing" / "payments")

    assert reconcile(outer.services()).verdict is Verdict.PROVEN_OK
    assert outer.services().ledger.findings(FEED) == []


@pytest.mark.parametrize("name", ["_staging", "_quarantine", "_scrub", "_reports"])
def test_what_the_other_feed_keeps_there_explains_no_missing_row_of_this_one(
    outer: Story, inner: Story, name: str
) -> None:
    """Readers skip it, and it is known whose it is."""
    [file] = (outer.directory / "landing" / "orders" / "gen=1").rglob("*.parquet")
    kept = outer.directory / "landing" / "orders" / name / "payments" / "kept.parquet"
    kept.parent.mkdir(parents=True, exist_ok=True)
    file.rename(kept)
    assert reconcile(outer.services()).verdict is Verdict.PROVEN_LOSS

    kept.rename(outer.directory / "landing" / "orders" / "_kept.parquet")
    assert reconcile(outer.services()).verdict is Verdict.UNKNOWN


def test_a_copy_of_a_batch_is_a_stray_all_the_same(outer: Story) -> None:
    """A directory that was moved by hand says of itself that it lies elsewhere."""
    for log in outer.broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(outer.services(), None, owner())
    [batch] = (outer.directory / "landing" / "orders").rglob("batch=*")
    copy = (
        outer.directory
        / INNER.strip("/")
        / batch.relative_to(outer.directory / "landing" / "orders")
    )
    copy.mkdir(parents=True)
    for each in batch.iterdir():
        (copy / each.name).write_bytes(each.read_bytes())

    found = reconcile(outer.services()).findings

    assert not any("other_feed" in each.evidence for each in found)
    assert {each.code for each in found} & {FindingCode.STRAY_FILE, FindingCode.LANDED_TWICE}


def test_a_feed_does_not_begin_in_another_feeds_directory(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    outer = a_landed_story(ledger_databases(), tmp_path, 10)
    for dsn in (outer.dsn, ledger_databases()):
        services = payments(Story(dsn, outer.directory, outer.broker))
        for begin in (dry_run, partial(plan_feed, owner=owner())):
            with pytest.raises(ConfigurationError) as refused:
                begin(services, None)
            assert "feed payments: target.root is '/landing/orders'" in str(refused.value)
            assert "outside of /landing/orders, where feed orders lands" in str(refused.value)
        assert services.ledger.generations(services.feed_name) == {}


def test_a_feed_that_has_begun_there_goes_on_and_says_so(
    outer: Story, inner: Story, caplog: pytest.LogCaptureFixture
) -> None:
    outer.broker.logs[0].append(Kind.RECORD, 5)
    report = land_feed(payments(inner), None, owner())
    assert sum(each.commit.record_count for each in report.batches if each.commit) == 5
    assert "Readers of feed orders find the rows of this feed too" in caplog.text


@pytest.mark.parametrize("root", ["/landing", "/landing/orders2", "/elsewhere/orders"])
def test_a_root_beside_another_feeds_directory_is_right(
    ledger_databases: Callable[[], str], tmp_path: Path, root: str
) -> None:
    outer = a_landed_story(ledger_databases(), tmp_path, 10)
    services = payments(outer)
    target = services.feed.target.model_copy(update={"root": root})
    feed = services.feed.model_copy(update={"target": target})
    assert land_feed(replace(services, feed=feed), None, owner()).errors == ()
    assert reconcile(outer.services()).verdict is Verdict.PROVEN_OK
