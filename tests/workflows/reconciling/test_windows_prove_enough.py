"""A window's end that can be proven is, whatever one look did not see."""

from __future__ import annotations

from tallystick.domain.report.completeness import CompleteBy, Proof
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of
from tests.support.scripted_broker import NOW, Kind
from tests.support.story import FEED
from tests.support.timed_story import END, HOUR, MINUTE, ONE, Place


def test_a_partition_whose_leader_was_away_at_a_windows_first_look_is_proven_by_a_later_one(
    pair: Place,
) -> None:
    for log in pair.broker.logs.values():
        log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    pair.land(NOW - HOUR)
    pair.broker.leaderless = {1}
    land_feed(pair.on(NOW), None, ONE)
    pair.broker.leaderless = set()
    pair.land(NOW + MINUTE)

    assert pair.look(NOW + 2 * MINUTE).verdict is Verdict.PROVEN_OK

    assert pair.story.published_offsets() == {each: [*range(5)] for each in (0, 1)}
    assert pair.proven.proof_of(END) is Proof.PROVEN


def test_a_partition_that_was_added_after_a_windows_first_look_is_proven_by_a_later_one(
    place: Place,
) -> None:
    """Of a daily window nothing is proven for the rest of the day."""
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    assert place.proven.proof_of(END) is Proof.PROVEN
    place.broker.logs[1] = type(log)()
    place.broker.logs[1].append(Kind.RECORD, 5, at=END - HOUR / 3)

    place.land(NOW + MINUTE)
    assert place.look(NOW + 2 * MINUTE).verdict is Verdict.PROVEN_OK

    assert place.proven.proof_of(END) is Proof.PROVEN


def test_a_log_whose_time_index_does_not_answer_does_not_silence_all_others(pair: Place) -> None:
    """`BrokerSnapshot.border`: "None where one of the partitions could not be asked"."""
    for log in pair.broker.logs.values():
        log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    pair.land()
    pair.broker.unindexed = frozenset({1})

    found = pair.look(NOW + HOUR)

    assert not found.silent
    assert pair.story.services().ledger.look_places(FEED)[-1].looked_at == NOW + HOUR


def test_a_log_of_which_nothing_is_due_yet_is_not_unknown(pair: Place) -> None:
    """`is_blank`: by windows, records that no run may land yet are no sign that none was landed."""
    pair.broker.logs[0].append(Kind.RECORD, 5, at=END - HOUR / 2)
    pair.broker.logs[1].append(Kind.RECORD, 5, at=END + HOUR / 4)
    pair.land()

    assert pair.look(NOW + MINUTE).verdict is Verdict.PROVEN_OK
    assert pair.proven.proof_of(END) is Proof.PROVEN


def test_no_report_says_that_nobody_has_looked_where_somebody_has(place: Place) -> None:
    """A feed in order, one minute after its window: "orders-0: nobody has looked at it since."."""
    place.broker.logs[0].append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    services = place.on(NOW + MINUTE)

    report = report_of(services, reconcile(services))

    assert report.complete_up_to == END
    assert not [each for each in report.held_back_by if "nobody has looked" in each]


def test_hourly_windows_that_become_daily_keep_what_was_proven(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    log.append(Kind.RECORD, 5, at=NOW)
    place.land(NOW + HOUR, "0 0 * * *")
    assert (place.proven.up_to, place.proven.by) == (END, CompleteBy.RECORD_TIME)
    place.land(NOW + 12 * HOUR, "0 0 * * *")
    assert place.proven.up_to == END + 12 * HOUR


def test_to_and_fro_between_modes(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    place.land()
    log.append(Kind.RECORD, 5, at=NOW)
    place.look(NOW + MINUTE, until="now")
    assert place.proven.proof_of(NOW + MINUTE) is not Proof.PROVEN
    place.look(NOW + 2 * MINUTE)
    assert place.proven.up_to == END
    place.look(NOW + HOUR)
    assert place.proven.proof_of(END + HOUR) is Proof.NOT_PROVEN


def test_an_open_transaction_below_the_border(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 2, at=END - HOUR / 2)
    log.open(3)
    for entry in log.entries[2:]:
        entry.timestamp_ms = int((END - HOUR / 3).timestamp() * 1000)
    place.land()
    assert place.proven.proof_of(END) is not Proof.PROVEN
    log.end(is_committed=True)
    place.land(NOW + MINUTE)
    assert place.proven.proof_of(END) is Proof.PROVEN


def test_records_without_a_time(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5)
    for entry in log.entries:
        entry.timestamp_ms = -1
    plan_feed(place.on(), None, ONE)
    assert place.proven.proof_of(END) is not Proof.PROVEN
    place.land()
    assert place.proven.proof_of(END) is Proof.PROVEN


def test_a_topic_that_is_made_anew_within_a_window_with_a_tail_unread(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 5, at=END - HOUR / 2)
    log.append(Kind.RECORD, 5, at=NOW)
    place.land()
    place.broker.recreate(1)
    place.broker.logs[0].append(Kind.RECORD, 2, at=NOW + HOUR / 4)
    place.land(NOW + HOUR)
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN


def test_a_log_that_was_cut_below_a_border(place: Place) -> None:
    log = place.broker.logs[0]
    log.append(Kind.RECORD, 8, at=END - HOUR / 2)
    place.land()
    log.cut(4)
    log.append(Kind.RECORD, 8, at=END + HOUR / 4)
    land_feed(place.on(NOW + HOUR), None, ONE)
    assert place.proven.proof_of(END + HOUR) is not Proof.PROVEN
