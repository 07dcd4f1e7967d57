"""JSON routes begin repairs, and ask for, approve and withdraw waivers.

Who may trigger `repair_<feed>` may change. A program proves its will by Airflow's token, sent in a
header.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Body, Depends, HTTPException, Path, Request
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from tallystick.domain.identities import FeedName
from tallystick.domain.rules.waivers import LATEST_END, WaiverWish
from tallystick.errors import EvidenceChanged
from tallystick.orchestration.repair_conf import MOST_NAMED
from tallystick.web import reading
from tallystick.web.access import (
    SIGNED_IN,
    SignedIn,
    User,
    name_of,
    require_bearer,
    require_may_change,
)
from tallystick.web.airflow_rest import AirflowRest
from tallystick.web.answers import AskedRunPart, FindingAnswer
from tallystick.web.dag_runs import begin_repair
from tallystick.web.desk import LedgerDesk
from tallystick.web.routes import Airflow, Desk, DocumentRoute, Feed, Number, found_for


async def _by_token(request: Request) -> None:
    require_bearer(request)


actions = APIRouter(
    prefix="/api", dependencies=[SIGNED_IN, Depends(_by_token)], route_class=DocumentRoute
)


def still_to_come(instant: datetime) -> datetime:
    """The instant; ValueError for one that is past, or too late to be kept."""
    if instant <= datetime.now(UTC):
        raise ValueError("an instant that is still to come")
    if instant >= LATEST_END:
        raise ValueError(f"an instant before {LATEST_END:%Y-%m-%d}")
    return instant


def with_words(text: str) -> str:
    """The text without blanks around it; ValueError for one that has nothing else."""
    if not text.strip():
        raise ValueError("a text that is not blank")
    return text.strip()


def with_short_breaks(text: object) -> object:
    """The text as a browser counts it: its forms send each line break as two characters."""
    return text.replace("\r\n", "\n") if isinstance(text, str) else text


Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
Reason = Annotated[
    str,
    BeforeValidator(with_short_breaks),
    Field(max_length=1_000, pattern=r"^[^\x00]*$"),
    AfterValidator(with_words),
]
End = Annotated[AwareDatetime, AfterValidator(still_to_come)]
RequestNumber = Annotated[int, Path(ge=1, lt=2**63)]


_Number = Annotated[int, Field(ge=1, lt=2**63)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RepairWish(_Asked):
    """A repair of one finding, and of those that are the same trouble."""

    evidence: Digest
    """As it was read: with another one by now, nothing is done."""
    dry_run: bool = True
    unpause: bool = False
    """The DAG of the repair, which else begins no run while it is paused."""


class FeedRepairWish(_Asked):
    """A repair of a feed."""

    findings: Annotated[Sequence[_Number], Field(max_length=MOST_NAMED)] = ()
    """Empty: all that are open."""
    evidence: Annotated[Sequence[Digest], Field(max_length=MOST_NAMED)] = ()
    """As it was read, of each of them: with another one by now, nothing is done."""
    dry_run: bool = True
    unpause: bool = False


class AcceptanceWish(_Asked):
    """Somebody asks that a finding is accepted for a time."""

    reason: Reason
    until: End
    """Excluded."""
    evidence: Digest


@actions.post("/findings/{number}/repair", status_code=201)
async def repair_finding(
    number: Number,
    wish: Annotated[RepairWish, Body()],
    user: SignedIn,
    desk: Desk,
    airflow: Airflow,
) -> AskedRunPart:
    """The run that was triggered."""
    found = await changeable(user, desk, number)
    return await repair_of_finding(user, desk, airflow, found, wish)


@actions.post("/feeds/{feed}/repair", status_code=201)
async def repair_feed(
    feed: Feed, wish: Annotated[FeedRepairWish, Body()], user: SignedIn, airflow: Airflow
) -> AskedRunPart:
    """The run that was triggered."""
    await require_may_change(user, feed)
    return await repair_of_feed(user, airflow, feed, wish)


@actions.post("/findings/{number}/waiver-requests", status_code=201)
async def ask_for_waiver(
    number: Number, wish: Annotated[AcceptanceWish, Body()], user: SignedIn, desk: Desk
) -> FindingAnswer:
    """The finding, with the request."""
    await changeable(user, desk, number)
    await asked_for(user, desk, number, wish)
    return await found_for(user, desk, number)


@actions.post("/findings/{number}/waiver-requests/{request_number}/approve")
async def approve_waiver(
    number: Number, request_number: RequestNumber, user: SignedIn, desk: Desk
) -> FindingAnswer:
    """The finding, which is accepted now."""
    await changeable(user, desk, number)
    await approved(user, desk, number, request_number)
    return await found_for(user, desk, number)


@actions.post("/findings/{number}/waiver-requests/{request_number}/withdraw")
async def withdraw_waiver(
    number: Number, request_number: RequestNumber, user: SignedIn, desk: Desk
) -> FindingAnswer:
    """The finding, of which nobody asks any more that it is accepted."""
    await changeable(user, desk, number)
    await withdrawn(user, desk, number, request_number)
    return await found_for(user, desk, number)


async def changeable(user: User, desk: LedgerDesk, number: int) -> FindingAnswer:
    """The finding: 404 for who may not see it, 403 for who may only look."""
    found = await found_for(user, desk, number)
    await require_may_change(user, FeedName(found.finding.feed))
    return found


async def repair_of_finding(
    user: User, desk: LedgerDesk, airflow: AirflowRest, found: FindingAnswer, wish: RepairWish
) -> AskedRunPart:
    """A repair that names the finding, and the open ones of the same trouble.

    What needs an operator's word has it. The evidence of the others is what the ledger has now.
    """
    number, feed = found.finding.number, FeedName(found.finding.feed)
    if number is None or not found.has_repair:
        raise HTTPException(409, f"No repair mends finding {number}. {found.remedy}")
    if wish.evidence != found.finding.evidence_digest:
        # The run would take the digest of any finding that it names: this one was not read so.
        raise EvidenceChanged(
            number, wish.evidence, found.finding.evidence_digest, found.finding.cause
        )
    others = [each for each in found.repair_ids if each != number]
    open_ones = await desk.ask(partial(reading.open_digests, feed=feed, numbers=others))
    named = {number: wish.evidence} | dict(open_ones)
    return await begin_repair(
        airflow,
        user,
        feed,
        sorted(named),
        list(dict.fromkeys(named.values())),
        is_dry_run=wish.dry_run,
        unpause=wish.unpause,
    )


async def repair_of_feed(
    user: User, airflow: AirflowRest, feed: FeedName, wish: FeedRepairWish
) -> AskedRunPart:
    """A repair of these findings; of none in particular, of all that are open."""
    return await begin_repair(
        airflow,
        user,
        feed,
        wish.findings,
        wish.evidence,
        is_dry_run=wish.dry_run,
        unpause=wish.unpause,
    )


async def asked_for(user: User, desk: LedgerDesk, number: int, wish: AcceptanceWish) -> None:
    """The request is on record, in the user's name."""
    entered = WaiverWish(
        finding_id=number,
        reason=wish.reason,
        asked_by=name_of(user),
        expires_at=wish.until,
        digest=wish.evidence,
    )
    await desk.ask(lambda ledger: ledger.ask_for_waiver(entered))


async def approved(user: User, desk: LedgerDesk, number: int, request: int) -> None:
    """The finding is accepted as that request asks, in the user's name."""
    by = name_of(user)
    await desk.ask(lambda ledger: ledger.approve_waiver(request, finding_id=number, by=by))


async def withdrawn(user: User, desk: LedgerDesk, number: int, request: int) -> None:
    """The request is over, in the user's name."""
    by = name_of(user)
    await desk.ask(lambda ledger: ledger.withdraw_waiver_request(request, finding_id=number, by=by))
