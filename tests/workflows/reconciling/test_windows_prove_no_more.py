"""A window's end is proven by what was heard and no more, whatever log, leader or clock changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from tallystick.domain.report.completeness import CompleteBy, Proof
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import StorageUnavailable
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of, store_report
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import NOW, Kind
from tests.support.story import FEED, Story
from tests.support.timed_story import END, HOUR, MINUTE, ONE, Place, Timed, place_of
from tests.support.waivers import accept


def test_a_high_watermark_that_lags_at_a_later_window_proves_nothing(place: Place) -> None:
    """Design: "a new leader whose high watermark lags: nothing is proven"."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    log.append(Kind.RECORD, 5, at=END + HOUR / 2)  # of the next window, and seen by a look of it
    place.look(END + HOUR + MINUTE)
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN
    log.epoch, place.broker.lag = log.epoch + 1, 5

    place.look(END + 2 * HOUR + MINUTE)

    assert place.story.published_offsets() == {0: [*range(5)]}
    assert place.proven.proof_of(END + 2 * HOUR) is not Proof.PROVEN


def test_a_record_stays_from_the_future_until_its_time_has_come(place: Place) -> None:
    """Reports: "behind a record from the future (Z5) nothing is proven"."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    log.append(Kind.RECORD, 1, at=NOW + 110 * MINUTE)  # 14:20
    log.append(Kind.RECORD, 4, at=END + 10 * MINUTE)
    place.land()
    place.land()
    standing = [each.finding.code for each in place.story.services().ledger.findings(FEED)]
    assert standing == [FindingCode.NO_PROGRESS]
    log.append(Kind.RECORD, 20, at=END + 50 * MINUTE)

    place.land(NOW + HOUR)

    assert place.story.published_offsets() == {0: [*range(5)]}
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN


def test_what_is_from_the_future_is_measured_by_the_window_not_by_an_hour(place: Place) -> None:
    """With short windows a clock 50 minutes ahead makes window after window complete, and empty."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - 10 * MINUTE)
    place.land(END + MINUTE, "*/15 * * * *")
    log.append(Kind.RECORD, 1, at=END + 52 * MINUTE)  # 12:52, written at 12:02
    log.append(Kind.RECORD, 100, at=END + 3 * MINUTE)
    place.land(END + 16 * MINUTE, "*/15 * * * *")

    assert place.story.published_offsets() == {0: [*range(5)]}
    assert place.proven.proof_of(END + 15 * MINUTE) is not Proof.PROVEN


@pytest.mark.parametrize("until", ["window_end", "now"])
@pytest.mark.parametrize("looks_between", [1, 0])
def test_a_proof_of_clocks_that_were_set_back_is_of_no_later_time_than_the_looks_after_it(
    place: Place, until: str, looks_between: int
) -> None:
    """Design: "order comes from the ledger's sequences, never from a clock"."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land(NOW + 3 * HOUR, until=until)  # the ledger's clock is ahead, too
    for _ in range(looks_between):
        place.land(NOW, until=until)  # both were set right
    log.append(Kind.RECORD, 5, at=NOW + MINUTE)

    place.look(NOW + HOUR, until=until)

    assert place.story.published_offsets() == {0: [*range(5)]}
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN


def test_no_window_before_the_first_look_is_complete_where_the_log_began_above_zero(
    place: Place,
) -> None:
    """Reports: "where a log begins above offset 0, all before the feed's first look is unknown"."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)

    place.land(source={"start": "latest"})

    assert place.story.published_offsets() == {}
    assert place.proven.proof_of(END) is Proof.UNKNOWN
    assert place.proven.up_to is None, "each face shows this instant"


def test_what_a_report_says_is_not_told_over_what_a_later_run_has_said(place: Place) -> None:
    """A reconcile takes hours; a loss that was told meanwhile is not taken back by its report."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    services = place.on()
    document = report_of(services, reconcile(services))
    next((place.story.directory / "landing" / FEED).rglob("*.parquet")).unlink()
    place.look(NOW + MINUTE)  # finds it, and tells
    assert place.proven.up_to is None

    store_report(services, document)

    [head] = services.ledger.feed_heads(FEED, most_runs=1)
    assert head.verdict is Verdict.PROVEN_LOSS
    assert head.complete_up_to is None


def test_what_is_accepted_is_complete_no_longer_than_it_is_accepted(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    next((place.story.directory / "landing" / FEED).rglob("*.parquet")).unlink()
    place.look(NOW + MINUTE)
    ledger = place.story.services().ledger
    [number] = place.story.named()
    accept(ledger, number, datetime.now(UTC) + timedelta(seconds=1))
    assert place.proven.proof_of(END) is Proof.PROVEN
    sleep(1.2)

    assert place.proven.proof_of(END) is not Proof.PROVEN


class CutOnce(Timed):
    """A log that an unclean election cuts between a snapshot and the question for a time."""

    will_cut = False

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        if self.will_cut:
            self.will_cut = False
            self.logs[0].cut(4)
            self.logs[0].append(Kind.RECORD, 9, at=END + HOUR)
        return super().offsets_at(topic, instant, partitions)


def test_a_border_of_another_leadership_term_proves_nothing(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    """The snapshot and its border are of two leaders: only the topic's id is compared."""
    broker = CutOnce("orders", partitions=1)
    place = Place(Story(ledger_databases(), tmp_path, broker), broker)
    broker.logs[0].append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    broker.logs[0].append(Kind.RECORD, 5, at=END + HOUR / 2)
    broker.will_cut = True

    place.look(NOW + HOUR)

    assert place.story.published_offsets() == {0: [*range(5)]}
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN


class MadeAnewOnce(Timed):
    """A topic that is made anew between a snapshot and the question for a time."""

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        if self.topic_id.endswith("1"):
            self.recreate(1)
        return super().offsets_at(topic, instant, partitions)


def test_a_look_without_a_border_makes_no_other_statement_of_the_feed(place: Place) -> None:
    """`plan.until` says by what a feed is complete; a look that met a change says nothing of it."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    anew = MadeAnewOnce("orders", partitions=1)
    anew.logs = place.broker.logs
    later = Place(Story(place.story.dsn, place.story.directory, anew), anew)
    later.look(NOW + MINUTE)

    assert later.proven.by is CompleteBy.RECORD_TIME
    assert later.proven.up_to == END


def test_a_loss_far_behind_a_border_is_no_proof_and_what_a_repair_lands_again_is(
    place: Place,
) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    log.append(Kind.RECORD, 5, at=END + HOUR / 2)
    place.land(NOW + HOUR)
    assert place.proven.up_to == END + HOUR
    file = max((place.story.directory / "landing" / FEED).rglob("*.parquet"))
    file.unlink()
    place.look(NOW + HOUR)
    assert place.proven.up_to == END
    log.log_start_offset = 5
    place.look(NOW + HOUR + MINUTE)
    assert place.proven.up_to == END


def test_a_log_that_expires_before_a_windows_first_look(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    log.append(Kind.RECORD, 5, at=END + HOUR / 2)
    log.log_start_offset = 10
    place.look(NOW + HOUR)
    assert place.proven.up_to == END
    land_feed(place.on(NOW + HOUR), None, ONE)
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN


def test_a_compacted_log_whose_border_was_cleaned_away(place: Place) -> None:
    log = place.broker.logs[0]
    place.broker.is_compacted = True
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    log.append(Kind.RECORD, 2, at=END)
    log.append(Kind.RECORD, 2, at=END + HOUR / 2)
    for entry in log.entries[3:6]:
        entry.kind = Kind.COMPACTED
    plan_feed(place.on(), None, ONE)
    assert place.proven.proof_of(END) is not Proof.PROVEN
    place.land()
    assert place.proven.proof_of(END) is Proof.PROVEN


class SilentStore:
    def __init__(self, store: Any) -> None:
        self._store, self.is_silent = store, True

    def __getattr__(self, name: str) -> Any:
        if self.is_silent:
            raise StorageUnavailable("scripted", "no answer")
        return getattr(self._store, name)


def test_while_storage_is_silent_no_newer_window_is_complete(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    place.look(NOW + MINUTE)
    services = place.on(NOW + 2 * MINUTE)
    silent = replace(services, store=SilentStore(services.store))  # type: ignore[arg-type]
    store_report(services, report_of(services, reconcile(silent)))
    log.append(Kind.RECORD, 5, at=END + HOUR / 2)
    place.land(NOW + HOUR)
    assert place.proven.up_to == END
    place.look(NOW + HOUR + MINUTE)
    assert place.proven.up_to == END + HOUR


@pytest.mark.parametrize("until", ["window_end", "now"])
def test_records_that_were_cut_away_unread_are_not_proven_by_those_that_took_their_offsets(
    place: Place, until: str
) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 4, at=END - HOUR / 2)
    place.land(until=until)
    log.append(Kind.RECORD, 4, at=END + HOUR / 2)
    place.look(NOW + HOUR, until=until)
    log.cut(4)
    log.append(Kind.RECORD, 9, at=END + HOUR + HOUR / 2)
    land_feed(place.on(NOW + 2 * HOUR, until=until), None, ONE)
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN
    repair_feed(place.on(NOW + 2 * HOUR, until=until), place.story.named(), ONE)
    land_feed(place.on(NOW + 2 * HOUR, until=until), None, ONE)
    place.look(NOW + 2 * HOUR, until=until)

    assert sorted(place.story.published_offsets()[0]) == [*range(13)]
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN


@pytest.mark.parametrize("until", ["window_end", "now"])
def test_after_a_cure_all_faces_say_so_and_not_before(place: Place, until: str) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 4, at=END - HOUR / 2)
    place.land(until=until)
    place.look(NOW, until=until)
    next((place.story.directory / "landing" / FEED).rglob("*.parquet")).unlink()
    place.look(NOW + MINUTE, until=until)

    def head() -> Any:
        return place.story.services().ledger.feed_heads(FEED, most_runs=1)[0]

    assert (head().verdict, head().complete_up_to) == (Verdict.PROVEN_LOSS, None)
    repair_feed(place.on(NOW + 2 * MINUTE, until=until), place.story.named(), ONE)
    assert place.story.published_offsets() == {0: [*range(4)]}
    assert head().verdict is Verdict.PROVEN_OK
    assert place.proven.proof_of(END) is Proof.PROVEN


def test_a_rebuilt_ledger_proves_what_it_has_looked_at_and_no_more(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    place = place_of(ledger_databases(), tmp_path)
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    log.append(Kind.RECORD, 5, at=END + HOUR / 2)
    anew = Place(Story(ledger_databases(), tmp_path, place.broker), place.broker)
    rebuild(anew.on(NOW + HOUR))
    assert anew.proven.proof_of(END) is not Proof.PROVEN
    anew.look(NOW + HOUR)
    assert anew.proven.proof_of(END + HOUR) is not Proof.PROVEN
    anew.land(NOW + HOUR)
    assert anew.proven.up_to == END + HOUR
    assert anew.story.published_offsets() == {0: [*range(10)]}


def test_a_border_that_waits_for_a_publish_is_not_complete(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    services = place.on()
    refusing = replace(services, store=NoRename(services.store))  # type: ignore[arg-type]
    land_feed(refusing, None, ONE)
    assert place.story.published_offsets() == {}
    assert place.proven.proof_of(END) is not Proof.PROVEN


class NoRename:
    def __init__(self, store: Any) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name.startswith("rename"):
            raise StorageUnavailable("scripted", "no answer")
        return getattr(self._store, name)


@pytest.mark.parametrize("until", ["window_end", "now"])
def test_a_partition_that_never_had_a_leader_since_the_feed_began_holds_the_feed_back(
    pair: Place, until: str
) -> None:
    """Reports: "a partition that a look does not list is not proven"."""
    for log in pair.broker.logs.values():
        log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    pair.broker.leaderless = {1}
    land_feed(pair.on(until=until), None, ONE)

    assert pair.story.published_offsets() == {0: [*range(5)]}
    assert pair.proven.proof_of(END) is not Proof.PROVEN
    pair.look(NOW + MINUTE, until=until)
    assert pair.proven.proof_of(END) is not Proof.PROVEN


def test_a_partition_that_was_added_and_never_had_a_leader_holds_the_feed_back(
    place: Place,
) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    place.broker.logs[1] = type(log)()
    place.broker.logs[1].append(Kind.RECORD, 5, at=END + HOUR / 2)
    place.broker.leaderless = {1}
    land_feed(place.on(NOW + HOUR), None, ONE)

    place.look(NOW + HOUR + MINUTE)

    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN
