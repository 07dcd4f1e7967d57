"""Runs begin here, feeds end, and waivers are asked for, approved and withdrawn.

Each change has a route for programs, which answers with a document, and at the same address without
`/api` one for our pages' forms, which leads to a page. Who may trigger `repair_<feed>` may change.
A program proves its will by Airflow's token, sent in a header, a person by the token of the form.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any, Final, TypeAlias, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, HTTPException, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)

from tallystick.domain.identities import FeedName
from tallystick.domain.rules.waivers import WaiverWish, as_read, still_to_come
from tallystick.errors import EvidenceChanged
from tallystick.orchestration.dag_ids import INGEST, RECONCILE, REPAIR, dag_id_of
from tallystick.orchestration.repair_conf import MOST_NAMED, conf_of
from tallystick.settings.group_names import group_of
from tallystick.web.access import (
    PageReader,
    SignedIn,
    User,
    name_of,
    not_found,
    require_bearer,
    require_form_token,
    require_may_change,
    require_visible,
)
from tallystick.web.airflow_rest import AirflowRest
from tallystick.web.answers import AskedRunPart, FindingAnswer, RetiredAnswer
from tallystick.web.dag_runs import begin_run
from tallystick.web.desk import LedgerDesk
from tallystick.web.pages import below, finding_page, not_understood, up_from
from tallystick.web.routes import Airflow, Desk, DocumentRoute, Name, Number, found_for, is_gone

_FORM: Final = "form"
"""The context of a wish that a form has sent."""


async def _by_token(request: Request, user: SignedIn) -> None:
    require_bearer(request)
    request.state.user = user


async def _by_form(request: Request, user: PageReader) -> None:
    token = str((await request.form()).get("form_token", ""))
    require_form_token(request, user, below(request), token)
    request.state.user = user


actions = APIRouter(prefix="/api", dependencies=[Depends(_by_token)], route_class=DocumentRoute)
forms = APIRouter(dependencies=[Depends(_by_form)], route_class=DocumentRoute)


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks for a change, and whom this app asks for them."""

    request: Request
    user: User
    desk: LedgerDesk
    airflow: AirflowRest


def _asker(request: Request, desk: Desk, airflow: Airflow) -> Asker:
    return Asker(request, request.state.user, desk, airflow)


By = Annotated[Asker, Depends(_asker)]


async def _finding(number: Number, by: By) -> FindingAnswer:
    """The finding: 404 for who may not see it, 403 for who may only look."""
    found = await found_for(by.user, by.desk, number)
    await require_may_change(by.user, FeedName(found.finding.feed))
    return found


async def _feed(feed: Name, by: By) -> FeedName:
    await require_visible(by.user, FeedName(feed))
    await require_may_change(by.user, FeedName(feed))
    return FeedName(feed)


Finding = Annotated[FindingAnswer, Depends(_finding)]
Feed = Annotated[FeedName, Depends(_feed)]
RequestNumber = Annotated[int, Path(ge=1, lt=2**63)]


def _aware(instant: datetime, info: ValidationInfo) -> datetime:
    """A browser's field of date and time has no time zone; the page says that it is UTC."""
    if instant.tzinfo is None and info.context != _FORM:
        raise ValueError("an instant with its time zone")
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _with_words(text: str) -> str:
    if not text.strip():
        raise ValueError("a text that is not blank")
    return text.strip()


def _with_short_breaks(text: object) -> object:
    """The text as a browser counts it: its forms send each line break as two characters."""
    return text.replace("\r\n", "\n") if isinstance(text, str) else text


def _listed(values: object, info: ValidationInfo) -> object:
    """A form sends several values as one text, separated by commas."""
    if info.context != _FORM or not isinstance(values, str):
        return values
    return [each.strip() for each in values.split(",")] if values.strip() else []


_Several: Final = (BeforeValidator(_listed), Field(max_length=MOST_NAMED))
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
_Reason = Annotated[
    str,
    BeforeValidator(_with_short_breaks),
    Field(max_length=1_000, pattern=r"^[^\x00]*$"),
    AfterValidator(_with_words),
]
_End = Annotated[
    datetime,
    AfterValidator(_aware),
    AfterValidator(lambda end: still_to_come(end, datetime.now(UTC))),
]
_Number = Annotated[int, Field(ge=1, lt=2**63)]


class Wish(BaseModel):
    """What is sent with a change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RunWish(Wish):
    """A run of one of a feed's DAGs."""

    unpause: bool = False
    """The DAG, which else begins no run while it is paused."""


class RepairWish(RunWish):
    """A repair of one finding, and of those that are the same trouble."""

    evidence: _Digest
    """As it was read: with another one by now, nothing is done."""
    dry_run: bool = True


class FeedRepairWish(RunWish):
    """A repair of a feed."""

    findings: Annotated[Sequence[_Number], *_Several] = ()
    """Empty: all that are open."""
    evidence: Annotated[Sequence[_Digest], *_Several] = ()
    """As it was read, of each of them: with another one by now, nothing is done."""
    dry_run: bool = True


class AcceptanceWish(Wish):
    """Somebody asks that a trouble is accepted for a time."""

    reason: _Reason
    until: _End
    """Excluded."""
    evidence: Annotated[Sequence[_Digest], *_Several]
    """As it was read, of each finding of the trouble: with another one by now, nothing is done."""


class EndingWish(Wish):
    """Somebody ends what two people have accepted, or a feed."""

    reason: _Reason


W = TypeVar("W", bound=Wish)
Change: TypeAlias = Callable[..., Awaitable[Any]]


def _sent(kind: type[W]) -> Callable[[Request], Awaitable[W | RequestValidationError]]:
    """Reads a wish from JSON, or from a form, which leaves out a box that is not ticked.

    What is wrong with a form is handed on: its page says so.
    """

    async def read(request: Request) -> W | RequestValidationError:
        is_form = not below(request).startswith(f"{actions.prefix}/")
        try:
            if not is_form:
                return kind.model_validate_json(await request.body())
            form, fields = await request.form(), kind.model_fields
            boxes = {name: False for name, each in fields.items() if each.annotation is bool}
            filled = {name: form[name] for name in fields if name in form}
            return kind.model_validate(boxes | filled, context=_FORM)
        except ValidationError as error:
            failure = RequestValidationError(error.errors())
            if is_form:
                return failure
            raise failure from error

    return read


def _finding_page(by: Asker, answer: Any) -> str:
    return f"findings/{by.request.path_params['number']}"


def _run_page(by: Asker, run: AskedRunPart) -> str:
    return f"run?{urlencode({'dag_id': run.dag_id, 'run_id': run.run_id})}"


def _changes(
    path: str, status_code: int = 200, page: Callable[[Asker, Any], str] = _finding_page
) -> Callable[[Change], Change]:
    """Gives a change its two addresses; a form leads on to the page, by a relative address.

    A finding's form that is not understood shows the finding, with what was written.
    """

    def add(change: Change) -> Change:
        @wraps(change)
        async def by_form(by: Asker, **values: Any) -> Response:
            for each in values.values():
                if isinstance(each, RequestValidationError):
                    if "found" not in values:
                        raise each
                    number, wrong = values["found"].finding.number, not_understood(each)
                    return await finding_page(
                        by.request, number, by.user, by.desk, by.airflow, wrong
                    )
            answer = await change(by, **values)
            return RedirectResponse(f"{up_from(below(by.request))}{page(by, answer)}", 303)

        forms.post(path)(by_form)
        added: Change = actions.post(path, status_code=status_code)(change)
        return added

    return add


@_changes("/findings/{number}/repair", 201)
async def repair_finding(
    by: By, found: Finding, wish: Annotated[RepairWish, Depends(_sent(RepairWish))]
) -> AskedRunPart:
    """The run that was triggered: it names the finding, and those of the same trouble.

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
    digests = list(dict.fromkeys(found.repair_evidence.values()))
    conf = conf_of(list(found.repair_evidence), digests, is_dry_run=wish.dry_run)
    return await _begun(by, REPAIR, feed, conf, wish)


@_changes("/feeds/{feed}/repair", 201, _run_page)
async def repair_feed(
    by: By, feed: Feed, wish: Annotated[FeedRepairWish, Depends(_sent(FeedRepairWish))]
) -> AskedRunPart:
    """The run that was triggered: of these findings; without one, of all that are open."""
    conf = conf_of(wish.findings, wish.evidence, is_dry_run=wish.dry_run)
    return await _begun(by, REPAIR, feed, conf, wish)


@_changes("/feeds/{feed}/ingest", 201, _run_page)
async def land_now(
    by: By, feed: Feed, wish: Annotated[RunWish, Depends(_sent(RunWish))]
) -> AskedRunPart:
    """The run of `ingest_<feed>` that was triggered: it lands what is due."""
    return await _begun(by, INGEST, feed, {}, wish)


@_changes("/feeds/{feed}/reconcile", 201, _run_page)
async def check_now(
    by: By, feed: Feed, wish: Annotated[RunWish, Depends(_sent(RunWish))]
) -> AskedRunPart:
    """The run of `reconcile_<feed>` that was triggered: it proves the feed anew."""
    return await _begun(by, RECONCILE, feed, {}, wish)


async def _begun(
    by: Asker, kind: str, feed: FeedName, conf: Mapping[str, object], wish: RunWish
) -> AskedRunPart:
    dag_id = dag_id_of(kind, feed)
    if group_of(feed) != feed:
        conf = {**conf, "feed": feed}
    return await begin_run(by.airflow, by.user, dag_id, conf, unpause=wish.unpause)


@_changes("/feeds/{feed}/retire", page=lambda by, answer: "")
async def retire_feed(
    by: By, feed: Feed, wish: Annotated[EndingWish, Depends(_sent(EndingWish))]
) -> RetiredAnswer:
    """With what the feed has ended.

    A feed whose file is there, broken or not, would be planned again: it is refused. One of a
    group is left out from then on.
    """
    if group_of(feed) == feed and not await is_gone(feed):
        raise HTTPException(409, f"Feed {feed} has a file: take it away first.")
    if not await by.desk.ask(lambda ledger: ledger.feed_heads(feed, most_runs=0)):
        raise not_found(f"feed {feed}")
    name = name_of(by.user)
    ended = await by.desk.ask(lambda ledger: ledger.retire(feed, reason=wish.reason, by=name))
    digest = ended.digest.hex() if ended.digest else None
    return RetiredAnswer(feed=feed, commits=ended.commits, digest=digest)


@_changes("/findings/{number}/waiver-requests", 201)
async def ask_for_waiver(
    by: By,
    number: Number,
    found: Finding,
    wish: Annotated[AcceptanceWish, Depends(_sent(AcceptanceWish))],
) -> FindingAnswer:
    """The finding, with the request, in the user's name, which somebody else may approve now.

    It is asked for the open findings of the same trouble, too.
    """
    asked = [
        WaiverWish(
            finding_id=each,
            reason=wish.reason,
            asked_by=name_of(by.user),
            expires_at=wish.until,
            digest=as_read(digest, wish.evidence),
        )
        for each, digest in found.waiver_evidence.items()
    ]
    await by.desk.ask(lambda ledger: ledger.ask_for_waivers(asked))
    return await found_for(by.user, by.desk, number)


def _asked_with(found: FindingAnswer, request_number: int) -> Mapping[int, int]:
    """By finding, the requests that were made at once; one that is over alone, to be refused."""
    asked = found.waiver_request
    together = asked.together if asked and asked.number == request_number else {}
    return {**together, found.finding.number or 0: request_number}


@_changes("/findings/{number}/waiver-requests/{request_number}/approve")
async def approve_waiver(
    by: By, number: Number, found: Finding, request_number: RequestNumber
) -> FindingAnswer:
    """The finding, which is accepted now as that request asks, in the user's name.

    So are those of the same trouble that were asked for with it.
    """
    name, requests = name_of(by.user), _asked_with(found, request_number)
    await by.desk.ask(lambda ledger: ledger.approve_waivers(requests, by=name))
    return await found_for(by.user, by.desk, number)


@_changes("/findings/{number}/waiver-requests/{request_number}/withdraw")
async def withdraw_waiver(
    by: By, number: Number, found: Finding, request_number: RequestNumber
) -> FindingAnswer:
    """The finding, of whose trouble nobody asks any more that it is accepted."""
    name, requests = name_of(by.user), _asked_with(found, request_number)
    await by.desk.ask(lambda ledger: ledger.withdraw_waiver_requests(requests, by=name))
    return await found_for(by.user, by.desk, number)


@_changes("/findings/{number}/waiver/end")
async def end_waiver(
    by: By,
    number: Number,
    found: Finding,
    wish: Annotated[EndingWish, Depends(_sent(EndingWish))],
) -> FindingAnswer:
    """The finding, which is open again, as are those of its trouble that were accepted."""
    name = name_of(by.user)
    await by.desk.ask(
        lambda ledger: ledger.end_waivers(found.waiver_evidence, by=name, reason=wish.reason)
    )
    return await found_for(by.user, by.desk, number)
