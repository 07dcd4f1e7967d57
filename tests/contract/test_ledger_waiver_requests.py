"""What the ledger promises of requests for waivers: two people, one evidence, one end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tallystick.domain.rules.waivers import RequestEnding, WaiverRequest, WaiverWish
from tallystick.domain.verdicts import FindingState
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
    found = story.ledger.waiver_request(number)
    assert found
    return found


def test_a_request_that_is_void_by_its_evidence_waits_for_nobody(
    story: LedgerStory, number: int
) -> None:
    asked = story.ledger.ask_for_waiver(wish(story, number))
    assert story.ledger.waiting_requests() == {FEED: [asked]}

    change_evidence(story)

    assert not newest(story, number).may_be_approved(story.finding(number).digest)
    assert story.ledger.waiting_requests() == {}


def test_one_asks_another_approves_and_the_finding_is_waived(
    story: LedgerStory, number: int
) -> None:
    assert story.ledger.waiver_request(number) is None
    asked = story.ledger.ask_for_waiver(wish(story, number))
    assert asked == newest(story, number)
    assert (asked.ending, state(story, number)) == (None, FindingState.OPEN)

    story.ledger.approve_waiver(asked.number, finding_id=number, by="grace")

    stands = story.finding(number)
    assert stands.state is FindingState.WAIVED
    assert stands.waiver == asked.wish.approved("grace")
    done = newest(story, number)
    assert (done.ending, done.ended_by) == (RequestEnding.APPROVED, "grace")


@pytest.mark.parametrize("by", ["ada", "ADA", " ada "])
def test_who_asks_never_approves(story: LedgerStory, number: int, by: str) -> None:
    asked = story.ledger.ask_for_waiver(wish(story, number))
    with pytest.raises(WaiverRefused, match="somebody else must approve"):
        story.ledger.approve_waiver(asked.number, finding_id=number, by=by)
    with story.raw() as hand, pytest.raises(psycopg.errors.CheckViolation, match="waiver_by_two"):
        hand.execute(
            "INSERT INTO waiver (finding_id, evidence_sha256, reason, asked_by, approved_by,"
            " expires_at, request_id) SELECT finding_id, evidence_sha256, reason, asked_by, %s,"
            " expires_at, request_id FROM waiver_request",
            [by],
        )
    assert state(story, number) is FindingState.OPEN


def test_nobody_approves_what_is_another_evidence_by_now(story: LedgerStory, number: int) -> None:
    asked = story.ledger.ask_for_waiver(wish(story, number))
    change_evidence(story)
    with pytest.raises(EvidenceChanged):
        story.ledger.approve_waiver(asked.number, finding_id=number, by="grace")
    with pytest.raises(EvidenceChanged):
        story.ledger.ask_for_waiver(asked.wish)
    assert not newest(story, number).may_be_approved(wish(story, number).digest)
    assert state(story, number) is FindingState.OPEN

    anew = story.ledger.ask_for_waiver(wish(story, number, asked_by="grace"))
    story.ledger.approve_waiver(anew.number, finding_id=number, by="ada")
    assert state(story, number) is FindingState.WAIVED
    with pytest.raises(WaiverRefused, match="it is waived, not open"):
        story.ledger.approve_waiver(asked.number, finding_id=number, by="grace")


def test_a_request_ends_with_what_it_asks_for(
    story: LedgerStory, number: int, two_hours_pass: Callable[[], None]
) -> None:
    until = story.ledger.clock() + timedelta(hours=1)
    asked = story.ledger.ask_for_waiver(wish(story, number, expires_at=until))
    two_hours_pass()
    assert newest(story, number).has_expired
    with pytest.raises(WaiverRefused, match="has come"):
        story.ledger.approve_waiver(asked.number, finding_id=number, by="grace")
    story.ledger.ask_for_waiver(wish(story, number, asked_by="grace"))
    with pytest.raises(WaiverRefused, match="was replaced by grace"):
        story.ledger.approve_waiver(asked.number, finding_id=number, by="eve")


def test_a_finding_has_one_request_that_stands(story: LedgerStory, number: int) -> None:
    story.ledger.ask_for_waiver(wish(story, number))
    with pytest.raises(WaiverRefused, match="ada has asked already"):
        story.ledger.ask_for_waiver(wish(story, number, asked_by="grace"))
    with story.raw() as hand, pytest.raises(psycopg.errors.UniqueViolation):
        hand.execute(
            "INSERT INTO waiver_request (finding_id, evidence_sha256, reason, asked_by, expires_at)"
            " SELECT finding_id, evidence_sha256, reason, 'eve', expires_at FROM waiver_request"
        )


@pytest.mark.parametrize("by", ["ZOE\u0308", "zo\u00eb\u200b", "\uff3ao\u00eb", "\u00a0Zo\u00eb"])
def test_who_asks_never_approves_by_writing_their_name_otherwise(
    story: LedgerStory, number: int, by: str
) -> None:
    asked = story.ledger.ask_for_waiver(wish(story, number, asked_by="Zo\u00eb"))
    with pytest.raises(WaiverRefused, match="somebody else must approve"):
        story.ledger.approve_waiver(asked.number, finding_id=number, by=by)
    assert state(story, number) is FindingState.OPEN


@pytest.mark.parametrize("by", ["ada", "grace"])
def test_a_request_that_is_withdrawn_is_over(story: LedgerStory, number: int, by: str) -> None:
    asked = story.ledger.ask_for_waiver(wish(story, number))
    story.ledger.withdraw_waiver_request(asked.number, finding_id=number, by=by)
    assert newest(story, number).ending is RequestEnding.WITHDRAWN
    for change in (story.ledger.approve_waiver, story.ledger.withdraw_waiver_request):
        with pytest.raises(WaiverRefused, match=f"was withdrawn by {by}"):
            change(asked.number, finding_id=number, by="eve")
    assert story.ledger.ask_for_waiver(wish(story, number)).number > asked.number


def test_a_finding_that_is_over_or_of_another_number_has_no_waiver(
    story: LedgerStory, number: int
) -> None:
    asked = story.ledger.ask_for_waiver(wish(story, number))
    with pytest.raises(WaiverRefused, match="finding 99: it is unknown, not open"):
        story.ledger.approve_waiver(asked.number, finding_id=99, by="grace")
    story.ledger.record_findings(FEED, [finding_of(6, 7)])
    other = story.ledger.findings(FEED)[-1].finding_id
    with pytest.raises(WaiverRefused, match="is not on record"):
        story.ledger.approve_waiver(asked.number, finding_id=other, by="grace")
    story.ledger.close_findings(FEED, {number: "It is over."})
    with pytest.raises(WaiverRefused, match="remedied, not open"):
        story.ledger.approve_waiver(asked.number, finding_id=number, by="grace")
    with pytest.raises(WaiverRefused, match="remedied, not open"):
        story.ledger.ask_for_waiver(wish(story, number))


def test_a_waiver_by_command_needs_no_request_and_none_is_made(
    story: LedgerStory, number: int
) -> None:
    accept(story.ledger, number)
    assert state(story, number) is FindingState.WAIVED
    assert story.ledger.waiver_request(number) is None


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
        story.ledger.ask_for_waiver(wish(story, number, **changed))


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
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
    story.ledger.ask_for_waiver(wish(story, number))
    with story.raw() as hand, pytest.raises(psycopg.Error, match=refusal):
        hand.execute(statement)
