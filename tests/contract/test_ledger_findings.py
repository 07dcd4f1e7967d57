"""What the ledger promises of findings: each ends once, with a reason; a waiver ends by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tallystick.domain.identities import FeedName
from tallystick.domain.rules.findings import Finding, provisional
from tallystick.domain.rules.waivers import Waiver
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import EvidenceChanged, LedgerRefused, WaiverRefused
from tallystick.ledger.ledger import Ledger
from tests.support.ledger_story import FEED, LedgerStory, finding_of

LATER = datetime.now(UTC) + timedelta(days=30)


def recorded(story: LedgerStory, *findings: Finding) -> list[int]:
    """The numbers of what stands after these were recorded."""
    story.ledger.record_findings(FEED, findings)
    return [each.finding_id for each in story.ledger.findings(FEED)]


def waiver_of(story: LedgerStory, finding_id: int, **changed: object) -> Waiver:
    """Two people's word about the finding as it is now."""
    read = story.ledger.finding(finding_id)
    words: dict[str, object] = {
        "finding_id": finding_id,
        "reason": "the topic was emptied on purpose",
        "asked_by": "Ada",
        "approved_by": "Grace",
        "expires_at": LATER,
        "digest": read.digest if read else "",
    }
    return Waiver(**(words | changed))  # type: ignore[arg-type]


def states(story: LedgerStory) -> list[str]:
    """What became of every finding."""
    return [each.state.value for each in story.ledger.all_findings(FEED)]


def test_a_finding_is_closed_once_and_says_by_what(story: LedgerStory) -> None:
    number, other = recorded(story, finding_of(0, 5), finding_of(5, 9))
    assert story.ledger.close_findings(FEED, {number: "It was looked for again, and is gone."}) == 1
    assert story.ledger.close_findings(FEED, {number: "Something else."}) == 0
    assert [each.finding_id for each in story.ledger.findings(FEED)] == [other]
    closed = story.ledger.finding(number)
    assert closed is not None
    assert closed.state is FindingState.REMEDIED
    assert closed.closed_by == "It was looked for again, and is gone."
    assert closed.closed_at is not None


def test_what_comes_back_after_it_was_closed_is_a_new_finding(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of())
    story.ledger.close_findings(FEED, {number: "Gone."})
    (again,) = recorded(story, finding_of())
    assert again != number
    assert states(story) == ["remedied", "open"]


def test_another_feeds_finding_is_not_closed(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of())
    assert story.ledger.close_findings(FeedName("other"), {number: "Gone."}) == 0


def test_a_waived_finding_stands_as_waived_and_is_not_doubled(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of(seen_at="yesterday", frontier=5))
    story.ledger.waive([waiver_of(story, number)])
    recorded(story, finding_of(seen_at="today", frontier=5))
    assert states(story) == ["waived"]
    (standing,) = story.ledger.findings(FEED)
    assert standing.state is FindingState.WAIVED


def test_a_finding_has_its_newest_waiver_whatever_became_of_it(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of(frontier=5))
    assert [each.waiver for each in story.ledger.findings(FEED)] == [None]
    first = waiver_of(story, number, reason="the first")
    story.ledger.waive([first])
    recorded(story, finding_of(frontier=6))
    [void] = story.ledger.findings(FEED)
    assert void.waiver == first
    second = waiver_of(story, number)
    assert second.digest != first.digest
    story.ledger.waive([second])
    [again] = story.ledger.findings(FEED)
    assert (again.waiver, again.has_waiver_expired) == (second, False)


def test_a_finding_whose_evidence_has_changed_is_waived_as_the_last_look_saw_it(
    story: LedgerStory,
) -> None:
    (number,) = recorded(story, finding_of(frontier=5))
    first = story.ledger.finding(number)
    recorded(story, finding_of(frontier=6))
    seen = story.ledger.finding(number)
    assert first
    assert seen
    assert seen.finding.evidence == finding_of(frontier=6).evidence
    assert seen.first_seen_at == first.first_seen_at
    story.ledger.waive([waiver_of(story, number)])
    recorded(story, finding_of(frontier=6))
    assert states(story) == ["waived"]
    recorded(story, finding_of(frontier=5))
    assert states(story) == ["open"]


def test_the_words_of_a_finding_are_those_of_the_look_that_its_evidence_is_of(
    story: LedgerStory,
) -> None:
    (number,) = recorded(story, finding_of(cause="one bit has changed.", length_bytes=9))
    recorded(
        story, replace(finding_of(cause="it is empty.", length_bytes=0), next_step="Look again.")
    )
    seen = story.finding(number)
    assert (seen.finding.cause, seen.finding.next_step) == ("it is empty.", "Look again.")
    assert seen.finding.evidence == {"length_bytes": 0}


def unasked(*paths: str, said: str = "no answer.", log_start_offset: int = 20) -> Finding:
    """A loss that is unknown while these directories can't be asked."""
    evidence = {"log_start_offset": log_start_offset, "held_in": dict.fromkeys(paths, said)}
    found = finding_of(verdict=Verdict.UNKNOWN, cause=f"ask {paths}.")
    return provisional(replace(found, evidence=evidence))


def test_a_waiver_of_what_nobody_could_ask_covers_the_directories_that_were_read_of(
    story: LedgerStory,
) -> None:
    (number,) = recorded(story, unasked("/s/1"))
    story.ledger.waive([waiver_of(story, number)])
    recorded(story, unasked("/s/1", said="another word.", log_start_offset=30))
    assert states(story) == ["waived"], "the same directory"
    recorded(story, unasked("/s/2"))
    assert states(story) == ["open"]
    seen = story.finding(number)
    assert seen.finding.cause == "ask ('/s/2',)."
    assert seen.finding.evidence["held_in"] == {"/s/2": "no answer."}


def test_a_finding_is_not_waived_whose_evidence_has_changed_since_it_was_read(
    story: LedgerStory,
) -> None:
    (number,) = recorded(story, finding_of(frontier=5))
    read = waiver_of(story, number)
    recorded(story, finding_of(cause="it is empty.", frontier=6))
    with pytest.raises(
        EvidenceChanged, match=f"finding {number} is .* not {read.digest}: it is em"
    ):
        story.ledger.waive([read])
    assert states(story) == ["open"]
    recorded(story, finding_of(frontier=5, seen_at="later"))
    story.ledger.waive([read])
    assert states(story) == ["waived"]


def test_a_waiver_is_void_when_the_verdict_changes(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of(verdict=Verdict.UNKNOWN))
    story.ledger.waive([waiver_of(story, number)])
    recorded(story, finding_of(verdict=Verdict.PROVEN_LOSS))
    assert states(story) == ["superseded", "open"]


def waive_for_an_hour(story: LedgerStory, number: int) -> None:
    until = story.ledger.clock() + timedelta(hours=1)
    story.ledger.waive([waiver_of(story, number, expires_at=until)])


def test_only_an_open_finding_is_waived(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of())
    story.ledger.close_findings(FEED, {number: "Gone."})
    with pytest.raises(WaiverRefused, match=f"finding {number}: it is remedied, not open"):
        story.ledger.waive([waiver_of(story, number)])
    with pytest.raises(WaiverRefused, match="finding 99: it is unknown, not open"):
        story.ledger.waive([waiver_of(story, 99)])


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"approved_by": "ada"}, "waiver_by_two"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "waiver_expires_later"),
        ({"reason": ""}, "waiver_reason_check"),
    ],
)
def test_a_waiver_has_two_names_a_reason_and_an_end(
    story: LedgerStory, changed: dict[str, object], why: str
) -> None:
    (number,) = recorded(story, finding_of())
    with pytest.raises(LedgerRefused, match=why):
        story.ledger.waive([waiver_of(story, number, **changed)])
    assert states(story) == ["open"]


def test_what_closed_a_finding_never_changes(story: LedgerStory) -> None:
    (number,) = recorded(story, finding_of())
    story.ledger.close_findings(FEED, {number: "Gone."})
    with story.raw() as hand, pytest.raises(psycopg.Error, match="only its confirmation"):
        hand.execute("UPDATE finding SET closed_by = 'me'")


def test_evidence_changes_by_a_confirmation_only_and_never_once_it_ended(
    story: LedgerStory,
) -> None:
    (number,) = recorded(story, finding_of(frontier=5))
    with story.raw() as hand, pytest.raises(psycopg.Error, match="only its confirmation"):
        hand.execute("UPDATE finding SET evidence = '{}'")
    with story.raw() as hand, pytest.raises(psycopg.Error, match="only its confirmation"):
        hand.execute("UPDATE finding SET cause = 'another'")
    story.ledger.close_findings(FEED, {number: "Gone."})
    with story.raw() as hand, pytest.raises(psycopg.Error, match="only its confirmation"):
        hand.execute("UPDATE finding SET evidence = '{}', last_confirmed_at = clock_timestamp()")


def test_what_was_confirmed_since_it_was_found_is_not_closed_by_who_found_it_before(
    story: LedgerStory,
) -> None:
    number, other = recorded(story, finding_of(0, 5), finding_of(5, 9))
    before = story.ledger.findings(FEED)
    recorded(story, finding_of(0, 5))
    closed = {number: "Gone.", other: "Gone."}
    assert story.ledger.close_findings(FEED, closed, as_found=before) == 1
    assert states(story) == ["open", "remedied"]


def test_a_state_that_lasts_is_confirmed_while_the_log_grows_and_keeps_its_waiver(
    story: LedgerStory,
) -> None:
    near = finding_of(5, 9, verdict=Verdict.SUSPECTED)
    (number,) = recorded(story, near)
    story.ledger.waive([waiver_of(story, number)])
    assert recorded(story, replace(near, until_offset=12)) == [number]
    (standing,) = story.ledger.findings(FEED)
    assert standing.state is FindingState.WAIVED
    assert standing.finding.until_offset == 9
    assert standing.last_confirmed_at > standing.first_seen_at


def test_a_state_that_lasts_is_open_again_when_its_evidence_changes(story: LedgerStory) -> None:
    near = finding_of(5, 9, verdict=Verdict.SUSPECTED, retention_ms=10)
    (number,) = recorded(story, near)
    story.ledger.waive([waiver_of(story, number)])
    recorded(story, replace(near, until_offset=12, evidence={"retention_ms": 5}))
    assert states(story) == ["open"]


@pytest.fixture
def expired(story: LedgerStory, two_hours_pass: Callable[[], None]) -> int:
    """The number of a finding whose only waiver is over, and that nobody has looked for since."""
    (number,) = recorded(story, finding_of())
    waive_for_an_hour(story, number)
    two_hours_pass()
    return number


def test_a_finding_whose_waiver_has_expired_is_open_wherever_it_is_told(
    story: LedgerStory, expired: int
) -> None:
    stored = story.finding(expired)
    assert stored.state is FindingState.OPEN
    assert stored.has_waiver_expired
    assert states(story) == ["open"]
    assert [each.state for each in story.ledger.findings(FEED)] == [FindingState.OPEN]
    recorded(story, finding_of())
    assert states(story) == ["open"]


def test_a_waiver_that_has_expired_can_be_renewed(story: LedgerStory, expired: int) -> None:
    story.ledger.waive([waiver_of(story, expired)])
    assert states(story) == ["waived"]
    recorded(story, finding_of())
    assert states(story) == ["waived"]
    with pytest.raises(WaiverRefused, match=f"finding {expired}: it is waived, not open"):
        story.ledger.waive([waiver_of(story, expired)])


def test_the_newest_waiver_counts_and_no_longer_one_before_it(
    story: LedgerStory, two_hours_pass: Callable[[], None]
) -> None:
    (number,) = recorded(story, finding_of(frontier=5))
    story.ledger.waive([waiver_of(story, number)])
    recorded(story, finding_of(frontier=6))
    waive_for_an_hour(story, number)
    two_hours_pass()
    assert [each.state for each in story.ledger.findings(FEED)] == [FindingState.OPEN]


def test_findings_that_are_seen_again_and_again_use_up_no_numbers(story: LedgerStory) -> None:
    first, later = finding_of(0, 5), finding_of(6, 9, partition=None)
    for _ in range(3):
        story.ledger.record_findings(FEED, [first])
    story.ledger.record_findings(FEED, [later, first])
    story.ledger.record_findings(FEED, [first, later, finding_of(20, 21)])
    assert [each.finding_id for each in story.ledger.findings(FEED)] == [1, 2, 3]


def test_looks_that_tell_the_same_at_once_wait_for_each_other_in_turn(
    story: LedgerStory, ledger_dsn: str
) -> None:
    found = [finding_of(10 * each, 10 * each + 5) for each in range(200)]
    numbers = recorded(story, *found)

    def confirm(told: Sequence[Finding]) -> None:
        with closing(Ledger(ledger_dsn)) as ledger:
            for _ in range(20):
                ledger.record_findings(FEED, told)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(confirm, [found, found[::-1], found[100:] + found[:100]]))
    assert recorded(story, *found) == numbers
