"""What the ledger promises of requests for waivers: two people, one evidence, one end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tallystick.domain.rules.waivers import RequestEnding, WaiverRequest, WaiverWish
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.errors import EvidenceChanged, LedgerRefused, WaiverRefused
from tests.support.ledger_story import FEED, LedgerStory, finding_of
from tests.support.waivers import accept

LATER = datetime(2199, 1, 1, tzinfo=UTC)


@pytest.fixture
def number(story: LedgerStory) -> int:
    """Of an open finding."""
    story.open({0: (0, 20)})
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    return story.ledger.findings(FEED)[0].finding_id


def wish(story: LedgerStory, number: int, **changed: object) -> WaiverWish:
    read = story.ledger.finding(number)
    asked = WaiverWish(
        finding_id=number,
        reason="emptied on purpose",
        asked_by="ada",
        expires_at=LATER,
        digest=read.digest if read else "",
    )
    return replace(asked, **changed)  # type: ignore[arg-type]


def state(story: LedgerStory, number: int) -> FindingState:
    found = story.finding(number)
    return found.state


def change_evidence(story: LedgerStory) -> None:
    story.ledger.record_findings(FEED, [finding_of(0, 5, evidence={"length_bytes": 0})])


def newest(story: LedgerStory, number: int) -> WaiverRequest:
    return story.ledger.waiver_requests([number])[number]


def asked_for(story: LedgerStory, wished: WaiverWish) -> WaiverRequest:
    [asked] = story.ledger.ask_for_waivers([wished])
    return asked


def test_a_request_that_is_void_by_its_evidence_waits_for_nobody(
    story: LedgerStory, number: int
) -> None:
    story.ledger.ask_for_waivers([wish(story, number)])
    asked = newest(story, number)
    assert story.ledger.waiting_requests() == {FEED: [asked]}

    change_evidence(story)

    assert not newest(story, number).may_be_approved(story.finding(number).digest)
    assert story.ledger.waiting_requests() == {}


def test_one_asks_another_approves_and_the_finding_is_waived(
    story: LedgerStory, number: int
) -> None:
    assert not story.ledger.waiver_requests([number])
    asked = asked_for(story, wish(story, number))
    assert asked == newest(story, number)
    assert (asked.ending, state(story, number)) == (None, FindingState.OPEN)

    story.ledger.approve_waivers({number: asked.number}, by="grace")

    stands = story.finding(number)
    assert stands.state is FindingState.WAIVED
    assert stands.waiver == asked.wish.approved("grace")
    done = newest(story, number)
    assert (done.ending, done.ended_by) == (RequestEnding.APPROVED, "grace")


@pytest.mark.parametrize("by", ["ada", "ADA", " ada "])
def test_who_asks_never_approves(story: LedgerStory, number: int, by: str) -> None:
    asked = asked_for(story, wish(story, number))
    with pytest.raises(WaiverRefused, match="somebody else must approve"):
        story.ledger.approve_waivers({number: asked.number}, by=by)
    with story.raw() as hand, pytest.raises(psycopg.errors.CheckViolation, match="waiver_by_two"):
        hand.execute(
            "INSERT INTO waiver (finding_id, evidence_sha256, reason, asked_by, approved_by,"
            " expires_at, request_id) SELECT finding_id, evidence_sha256, reason, asked_by, %s,"
            " expires_at, request_id FROM waiver_request",
            [by],
        )
    assert state(story, number) is FindingState.OPEN


def test_nobody_approves_what_is_another_evidence_by_now(story: LedgerStory, number: int) -> None:
    asked = asked_for(story, wish(story, number))
    change_evidence(story)
    with pytest.raises(EvidenceChanged):
        story.ledger.approve_waivers({number: asked.number}, by="grace")
    with pytest.raises(EvidenceChanged):
        asked_for(story, asked.wish)
    assert not newest(story, number).may_be_approved(wish(story, number).digest)
    assert state(story, number) is FindingState.OPEN

    anew = asked_for(story, wish(story, number, asked_by="grace"))
    story.ledger.approve_waivers({number: anew.number}, by="ada")
    assert state(story, number) is FindingState.WAIVED
    with pytest.raises(WaiverRefused, match="it is waived, not open"):
        story.ledger.approve_waivers({number: asked.number}, by="grace")


def test_a_request_ends_with_what_it_asks_for(
    story: LedgerStory, number: int, two_hours_pass: Callable[[], None]
) -> None:
    until = story.ledger.clock() + timedelta(hours=1)
    asked = asked_for(story, wish(story, number, expires_at=until))
    two_hours_pass()
    assert newest(story, number).has_expired
    with pytest.raises(WaiverRefused, match="has come"):
        story.ledger.approve_waivers({number: asked.number}, by="grace")
    asked_for(story, wish(story, number, asked_by="grace"))
    with pytest.raises(WaiverRefused, match="was replaced by grace"):
        story.ledger.approve_waivers({number: asked.number}, by="eve")


def test_a_finding_has_one_request_that_stands(story: LedgerStory, number: int) -> None:
    asked_for(story, wish(story, number))
    with pytest.raises(WaiverRefused, match="ada has asked already"):
        asked_for(story, wish(story, number, asked_by="grace"))
    with story.raw() as hand, pytest.raises(psycopg.errors.UniqueViolation):
        hand.execute(
            "INSERT INTO waiver_request (finding_id, evidence_sha256, reason, asked_by, expires_at)"
            " SELECT finding_id, evidence_sha256, reason, 'eve', expires_at FROM waiver_request"
        )


@pytest.mark.parametrize("by", ["ZOE\u0308", "zo\u00eb\u200b", "\uff3ao\u00eb", "\u00a0Zo\u00eb"])
def test_who_asks_never_approves_by_writing_their_name_otherwise(
    story: LedgerStory, number: int, by: str
) -> None:
    asked = asked_for(story, wish(story, number, asked_by="Zo\u00eb"))
    with pytest.raises(WaiverRefused, match="somebody else must approve"):
        story.ledger.approve_waivers({number: asked.number}, by=by)
    assert state(story, number) is FindingState.OPEN


@pytest.mark.parametrize("by", ["ada", "grace"])
def test_a_request_that_is_withdrawn_is_over(story: LedgerStory, number: int, by: str) -> None:
    asked = asked_for(story, wish(story, number))
    story.ledger.withdraw_waiver_requests({number: asked.number}, by=by)
    assert newest(story, number).ending is RequestEnding.WITHDRAWN
    for change in (story.ledger.approve_waivers, story.ledger.withdraw_waiver_requests):
        with pytest.raises(WaiverRefused, match=f"was withdrawn by {by}"):
            change({number: asked.number}, by="eve")
    assert asked_for(story, wish(story, number)).number > asked.number


def test_a_finding_that_is_over_or_of_another_number_has_no_waiver(
    story: LedgerStory, number: int
) -> None:
    asked = asked_for(story, wish(story, number))
    with pytest.raises(WaiverRefused, match="finding 99: it is unknown, not open"):
        story.ledger.approve_waivers({99: asked.number}, by="grace")
    story.ledger.record_findings(FEED, [finding_of(6, 7)])
    other = story.ledger.findings(FEED)[-1].finding_id
    with pytest.raises(WaiverRefused, match="is not on record"):
        story.ledger.approve_waivers({other: asked.number}, by="grace")
    story.ledger.close_findings(FEED, {number: "It is over."})
    with pytest.raises(WaiverRefused, match="remedied, not open"):
        story.ledger.approve_waivers({number: asked.number}, by="grace")
    with pytest.raises(WaiverRefused, match="remedied, not open"):
        asked_for(story, wish(story, number))


@pytest.fixture
def numbers(story: LedgerStory, number: int) -> list[int]:
    """Of three open findings."""
    story.ledger.record_findings(FEED, [finding_of(each, each + 1) for each in (6, 8)])
    return [each.finding_id for each in story.ledger.findings(FEED)]


def test_a_trouble_is_asked_for_approved_and_ended_as_a_whole(
    story: LedgerStory, numbers: list[int]
) -> None:
    asked = story.ledger.ask_for_waivers([wish(story, each) for each in numbers])
    assert [each.wish.finding_id for each in asked] == numbers
    assert all(each.was_asked_with(asked[0]) for each in asked)
    story.ledger.approve_waivers({each.wish.finding_id: each.number for each in asked}, by="grace")
    assert [state(story, each) for each in numbers] == [FindingState.WAIVED] * 3

    story.ledger.end_waivers(numbers, by="eve", reason="it matters after all")

    for each in numbers:
        found = story.finding(each)
        assert found.state is FindingState.OPEN
        assert found.waiver_ending
        assert found.waiver_ending.ended_by == "eve"
        assert found.waiver_ending.reason == "it matters after all"
    [head] = story.ledger.feed_heads(most_runs=1)
    assert Verdict.WAIVED not in head.standing
    with pytest.raises(WaiverRefused, match="it is open, not waived"):
        story.ledger.end_waivers(numbers, by="eve", reason="again")
    story.ledger.ask_for_waivers([wish(story, numbers[0])])
    assert story.ledger.waiting_requests()
    accept(story.ledger, numbers[0])
    assert state(story, numbers[0]) is FindingState.WAIVED
    assert story.finding(numbers[0]).waiver_ending is None


def test_of_a_trouble_all_is_changed_or_nothing(story: LedgerStory, numbers: list[int]) -> None:
    read = [wish(story, each) for each in numbers]
    changed = finding_of(6, 7, evidence={"length_bytes": 0})
    story.ledger.record_findings(FEED, [changed])
    with pytest.raises(EvidenceChanged, match=f"of finding {numbers[1]} is"):
        story.ledger.ask_for_waivers(read)
    with pytest.raises(EvidenceChanged, match=f"of finding {numbers[1]} is"):
        story.ledger.waive([each.approved("grace") for each in read])
    assert not story.ledger.waiver_requests(numbers)

    asked = story.ledger.ask_for_waivers([wish(story, each) for each in numbers])
    requests = {each.wish.finding_id: each.number for each in asked}
    story.ledger.record_findings(FEED, [finding_of(8, 9, evidence={"length_bytes": 0})])
    with pytest.raises(EvidenceChanged, match=f"of finding {numbers[2]} is"):
        story.ledger.approve_waivers(requests, by="grace")
    assert [state(story, each) for each in numbers] == [FindingState.OPEN] * 3
    story.ledger.withdraw_waiver_requests({numbers[0]: requests[numbers[0]]}, by="ada")
    with pytest.raises(WaiverRefused, match=f"finding {numbers[0]}: .* was withdrawn"):
        story.ledger.withdraw_waiver_requests(requests, by="ada")
    assert newest(story, numbers[1]).ending is None


def test_a_request_of_another_moment_was_not_asked_with_it(
    story: LedgerStory, numbers: list[int]
) -> None:
    first, second = (asked_for(story, wish(story, each)) for each in numbers[:2])
    assert not second.was_asked_with(first)


def test_a_waiver_by_command_needs_no_request_and_none_is_made(
    story: LedgerStory, number: int
) -> None:
    accept(story.ledger, number)
    assert state(story, number) is FindingState.WAIVED
    assert not story.ledger.waiver_requests([number])


@pytest.mark.parametrize(
    ("changed", "constraint"),
    [
        ({"reason": " "}, "waiver_request_reason_check"),
        ({"asked_by": ""}, "waiver_request_asked_by_check"),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, "waiver_request_expires_later"),
    ],
)
def test_a_request_has_a_name_a_reason_and_an_end(
    story: LedgerStory, number: int, changed: dict[str, object], constraint: str
) -> None:
    with pytest.raises(LedgerRefused, match=constraint):
        asked_for(story, wish(story, number, **changed))


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        (
            "INSERT INTO waiver_ending SELECT 4711, 'x', 'eve'",
            "violates foreign key",
        ),
        ("UPDATE waiver_request SET reason = 'another'", "only its end is entered, once"),
        ("UPDATE waiver_request SET asked_by = 'eve'", "only its end is entered, once"),
        (
            "UPDATE waiver_request SET ending = 'approved', ended_by = 'eve', ended_at = now()",
            "no waiver of eve stands for it",
        ),
        (
            "UPDATE waiver_request SET ending = 'withdrawn'",
            "waiver_request_ends_whole",
        ),
        (
            "INSERT INTO waiver (finding_id, evidence_sha256, reason, asked_by, approved_by,"
            " expires_at, request_id) SELECT finding_id, evidence_sha256, 'another', asked_by,"
            " 'eve', expires_at, request_id FROM waiver_request",
            "does not stand, or asks for something else",
        ),
    ],
)
def test_what_was_asked_never_changes(
    story: LedgerStory, number: int, statement: str, refusal: str
) -> None:
    asked_for(story, wish(story, number))
    with story.raw() as hand, pytest.raises(psycopg.Error, match=refusal):
        hand.execute(statement)
