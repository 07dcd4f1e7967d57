"""Who sees what: every route of the app, for nobody, for a viewer, for a user of another DAG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.identities import BatchId
from tallystick.errors import LedgerUnavailable
from tallystick.orchestration.dag_ids import TAG
from tests.contract.test_ledger_reports import a_report
from tests.orchestration.page_place import OWN, PagePlace
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory, finding_of, snapshot_of
from tests.support.looks import record_look
from tests.support.repository import DOCS

pytestmark = [pytest.mark.usefixtures("known_dags"), pytest.mark.filterwarnings("default")]
RUN = "dag_id=ingest_orders&run_id=manual__1"
# One address for each route; a new route has none, and the test says so.
EXAMPLES = {
    "/api/feeds": "/api/feeds",
    "/api/feeds/{feed}": "/api/feeds/orders",
    "/api/feeds/{feed}/partitions": "/api/feeds/orders/partitions",
    "/api/feeds/{feed}/batches": "/api/feeds/orders/batches",
    "/api/feeds/{feed}/find": "/api/feeds/orders/find?what=0+5",
    "/api/feeds/{feed}/findings": "/api/feeds/orders/findings",
    "/api/feeds/{feed}/changes": "/api/feeds/orders/changes?earlier=1&later=1",
    "/api/feeds/{feed}/history": "/api/feeds/orders/history",
    "/api/feeds/{feed}/reports": "/api/feeds/orders/reports",
    "/api/feeds/{feed}/reports/{number}": "/api/feeds/orders/reports/1",
    "/api/feeds/{feed}/repairs": "/api/feeds/orders/repairs",
    "/api/batches/{batch_id}": "/api/batches/0123456789abcdef",
    "/api/findings/{number}": "/api/findings/1",
    "/api/run": f"/api/run?{RUN}",
    "/": "/",
    "/feeds/{feed}": "/feeds/orders",
    "/feeds/{feed}/find": "/feeds/orders/find?what=0+5",
    "/feeds/{feed}/changes": "/feeds/orders/changes?earlier=1&later=1",
    "/feeds/{feed}/history": "/feeds/orders/history",
    "/feeds/{feed}/reports": "/feeds/orders/reports",
    "/feeds/{feed}/reports/{number}": "/feeds/orders/reports/1",
    "/batches/{batch_id}": "/batches/0123456789abcdef",
    "/findings/{number}": "/findings/1",
    "/dag": "/dag?dag_id=ingest_orders",
    "/run": f"/run?{RUN}",
    "/assets/{name}": "/assets/page.js",
}
# Asked with a token of its own, by no user: tests/orchestration/test_metrics_route.py.
BY_TOKEN = {"/metrics"}
# One address for each route that changes something, and what is sent to it.
EVIDENCE = {"evidence": "44136fa3"}
ASKED = EVIDENCE | {"reason": "known", "until": "2199-01-01T00:00Z"}
POSTS: dict[str, tuple[str, dict[str, str]]] = {
    "/findings/{number}/repair": ("/findings/1/repair", EVIDENCE),
    "/feeds/{feed}/repair": ("/feeds/orders/repair", {}),
    "/feeds/{feed}/ingest": ("/feeds/orders/ingest", {}),
    "/feeds/{feed}/reconcile": ("/feeds/orders/reconcile", {}),
    "/feeds/{feed}/retire": ("/feeds/orders/retire", {"reason": "over"}),
    "/findings/{number}/waiver-requests": ("/findings/1/waiver-requests", ASKED),
    "/findings/{number}/waiver-requests/{request_number}/approve": (
        "/findings/1/waiver-requests/1/approve",
        {},
    ),
    "/findings/{number}/waiver-requests/{request_number}/withdraw": (
        "/findings/1/waiver-requests/1/withdraw",
        {},
    ),
    "/findings/{number}/waiver/end": ("/findings/1/waiver/end", {"reason": "known"}),
}
ALL = ("ingest_orders", "repair_orders")
# What they answer to who may see no feed of the ledger.
OPEN_TO_ALL = {"/", "/api/feeds", "/assets/{name}"}


@pytest.fixture(scope="module")
def story(ledger_server: LedgerServer) -> Iterator[LedgerStory]:
    """A feed with a batch, a finding and a report."""
    database = ledger_server.fresh()
    story = LedgerStory(ledger_server.dsn(database))
    story.open({0: (0, 20)})
    batch_id = BatchId("0123456789abcdef")
    story.freeze(replace(story.batch_of((0, 0, 10)), batch_id=batch_id))
    attempt = story.begin(batch_id)
    story.verify(attempt)
    story.ledger.commit(attempt)
    record_look(story.ledger, FEED, snapshot_of({0: (0, 20)}))
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    story.ledger.store_report(a_report())
    yield story
    story.ledger.close()
    ledger_server.drop(database)


@pytest.fixture(scope="module")
def place(story: LedgerStory) -> PagePlace:
    return PagePlace(story.dsn)


def test_every_route_is_in_this_test(place: PagePlace) -> None:
    found = [(*route.methods, route.path) for route in place.app.routes]  # type: ignore[attr-defined]
    posts = [("POST", f"{kind}{path}") for path in POSTS for kind in ("", "/api")]
    assert sorted(found) == sorted([*(("GET", path) for path in (*EXAMPLES, *BY_TOKEN)), *posts])


@pytest.mark.parametrize("path", EXAMPLES)
def test_nobody_sees_nothing(place: PagePlace, path: str) -> None:
    answer = place.client().get(EXAMPLES[path])
    if path.startswith("/api/"):
        assert answer.status_code == 401
    else:
        assert answer.status_code == 307
        assert answer.headers["location"].startswith("/auth/login?next=http%3A%2F%2Ftestserver")
    assert "orders" not in answer.text


@pytest.mark.parametrize("path", EXAMPLES)
@pytest.mark.parametrize("user", ["ada", "vera"])
def test_who_may_read_the_dag_sees_its_feed(place: PagePlace, path: str, user: str) -> None:
    answer = place.client(user, by_cookie=True).get(EXAMPLES[path])
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    if not path.startswith("/assets"):
        assert "orders" in answer.text
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", EXAMPLES)
def test_who_may_not_read_the_dag_sees_nothing_of_its_feed(
    place: PagePlace, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.restrict(monkeypatch, "otto", "ingest_clicks", "reconcile_orders")
    answer = place.client("otto", by_cookie=True).get(EXAMPLES[path])
    if path in OPEN_TO_ALL:
        assert answer.status_code == 200
        assert "orders" not in answer.text
        return
    assert answer.status_code == 404
    unknown = EXAMPLES[path].replace("orders", "nobody")
    if unknown != EXAMPLES[path]:
        said = place.client("otto", by_cookie=True).get(unknown)
        assert said.text.replace("nobody", "orders") == answer.text


@pytest.mark.parametrize("address", ["/findings/1", "/api/findings/1"])
def test_a_feed_that_takes_too_long_to_read_is_hidden_as_well(
    story: LedgerStory, place: PagePlace, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.restrict(monkeypatch, "otto", "ingest_clicks")

    def never(*_: object, **__: object) -> None:
        raise LedgerUnavailable("no answer")

    monkeypatch.setattr("tallystick.web.reading.finding_of_number", never)
    assert place.client("otto", by_cookie=True).get(address).status_code == 404
    assert place.client("vera", by_cookie=True).get(address).status_code == 503


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_what_only_tells_changes_nothing(place: PagePlace, method: str) -> None:
    client = place.client("ada")
    assert {client.request(method, each).status_code for each in EXAMPLES.values()} == {405}


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", POSTS)
def test_what_changes_something_does_so_by_post_only(
    place: PagePlace, path: str, method: str
) -> None:
    client = place.client("ada")
    address, _ = POSTS[path]
    for each in (address, f"/api{address}"):
        assert client.request(method, each).status_code == 405


@pytest.fixture
def unchanged(story: LedgerStory) -> Iterator[None]:
    """Nobody has triggered anything, and asked for nothing."""
    before = changes(story)
    yield
    assert changes(story) == before


def changes(story: LedgerStory) -> tuple[object, ...]:
    from airflow import settings
    from airflow.models import DagRun
    from sqlalchemy import func, select

    runs = settings.Session().scalar(select(func.count()).select_from(DagRun))
    return runs, story.ask("SELECT * FROM waiver_request"), story.ask("SELECT * FROM waiver")


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("path", POSTS)
def test_nobody_changes_anything(place: PagePlace, path: str) -> None:
    address, sent = POSTS[path]
    answer = place.client().post(
        address, data=sent | {"form_token": place.form_token("uma", address)}
    )
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/auth/login?next=")
    assert place.client().post(f"/api{address}", json=sent).status_code == 401


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    ("user", "dags", "status", "said"),
    [
        pytest.param(
            "vera", ALL, 403, "needs the right to trigger repair_orders", id="may only look"
        ),
        pytest.param("uma", ("ingest_orders", "repair_clicks"), 403, "", id="may not repair"),
        pytest.param("ugo", ("ingest_clicks", "repair_orders"), 404, "", id="may not read"),
    ],
)
def test_who_has_not_both_rights_changes_nothing(
    place: PagePlace,
    path: str,
    user: str,
    dags: Sequence[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place.restrict(monkeypatch, user, *dags)
    address, sent = POSTS[path]
    for answer in (
        place.send_form(user, address, sent),
        place.client(user).post(f"/api{address}", json=sent),
    ):
        assert answer.status_code == status
        assert said in answer.text
    assert "<form" not in place.client(user, by_cookie=True).get("/findings/1").text


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("path", POSTS)
def test_a_program_that_shows_a_cookie_changes_nothing(place: PagePlace, path: str) -> None:
    address, sent = POSTS[path]
    client = place.client("uma", by_cookie=True)
    assert client.post(f"/api{address}", json=sent, headers=OWN).status_code == 403
    client.headers["Authorization"] = "Basic dW1hOnVtYQ=="
    assert client.post(f"/api{address}", json=sent, headers=OWN).status_code == 403


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "token",
    [None, "", "no token", "of another address", "of another user", "of another key", "too old"],
)
def test_a_form_without_its_token_changes_nothing(
    place: PagePlace, path: str, token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    address, sent = POSTS[path]
    match token:
        case "of another address":
            token = place.form_token("uma", "/findings/2/repair")
        case "of another user":
            token = place.form_token("ugo", address)
        case "of another key":
            with monkeypatch.context() as patch:
                patch.setenv("AIRFLOW__API__SECRET_KEY", "somebody else's")
                token = place.form_token("uma", address)
        case "too old":
            token = place.form_token("uma", address)
            monkeypatch.setattr("tallystick.web.access.GOOD_SECONDS", -1)
    form = sent if token is None else sent | {"form_token": token}
    answer = place.client("uma", by_cookie=True).post(address, data=form, headers=OWN)
    assert answer.status_code == 403
    assert "orders" not in answer.text


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "null"},
        {"origin": "https://elsewhere.example"},
        {"origin": "http://testserver.elsewhere.example"},
        {"origin": "http://testserver:8443"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site", "origin": "http://testserver"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "same-origin", "origin": "https://elsewhere.example"},
    ],
    ids=str,
)
def test_a_form_from_elsewhere_changes_nothing(
    place: PagePlace, path: str, headers: dict[str, str]
) -> None:
    address, sent = POSTS[path]
    answer = place.send_form("uma", address, sent, headers)
    assert answer.status_code == 403
    assert "another site may have sent it" in answer.text


def test_every_route_is_documented() -> None:
    text = (DOCS / "page.md").read_text()
    assert not [path for path in (*EXAMPLES, *POSTS) if f"`{path}`" not in text]


@pytest.mark.parametrize(
    ("address", "dag"),
    [
        ("/dag?dag_id={}", "some_dag"),
        ("/run?dag_id={}&run_id=r", "some_dag"),
        ("/dag?dag_id={}", "ingest_sales"),
    ],
)
def test_the_tab_of_another_dag_says_that_it_has_nothing(
    place: PagePlace, address: str, dag: str
) -> None:
    answer = place.client("vera", by_cookie=True).get(address.format(dag))
    assert answer.status_code == 200
    assert f"{dag} is none of Tallystick" in answer.text
    assert "called ingest_, reconcile_, repair_ or deadline_, and then" in answer.text


def test_the_tab_of_a_feed_without_a_plan_says_what_begins_one(place: PagePlace) -> None:
    answer = place.client("vera", by_cookie=True).get("/dag?dag_id=reconcile_windowed")
    assert answer.status_code == 200
    link = '<a href="../dags/ingest_windowed" target="_top">ingest_windowed</a>'
    assert f"windowed has no plan yet: unpause or trigger {link}." in answer.text


NEXT = (("ingest_orders", False), ("reconcile_orders", True), ("deadline_orders", False))


def test_the_next_run_is_that_of_airflows_scheduler(place: PagePlace) -> None:
    from airflow.models.dag import DagModel, DagTag
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    at = datetime(2026, 11, 2, 3, tzinfo=UTC)
    with create_session() as session:
        session.merge(DagBundleModel(name="dags-folder"))
        session.flush()
        for dag_id, is_paused in NEXT:
            known = DagModel(dag_id=dag_id, bundle_name="dags-folder", is_paused=is_paused)
            known.is_stale = False
            known.next_dagrun_create_after = at
            session.merge(known)
            session.merge(DagTag(name=TAG, dag_id=dag_id))

    [feed] = place.client("vera").get("/api/feeds").json()["feeds"]

    assert feed["next_runs"] == [
        {"dag_id": dag_id, "at": None if is_paused else at.isoformat(), "is_paused": is_paused}
        for dag_id, is_paused in NEXT
    ]


@pytest.mark.usefixtures("no_runs")
def test_the_first_sentence_knows_what_airflow_knows(place: PagePlace) -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType

    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    states = {5: "failed", 4: "success", 3: "failed", 2: "failed", 1: "running"}
    with create_session() as session:
        for ago, state in states.items():
            due_at = hour - timedelta(hours=ago)
            session.add(
                DagRun(
                    dag_id="ingest_orders", run_id=f"was__{ago}", state=state, run_after=due_at,
                    run_type=DagRunType.MANUAL, start_date=due_at,
                )
            )  # fmt: skip
    answer = place.client("vera").get("/api/feeds").json()
    page = place.client("vera", by_cookie=True).get("/").text
    with create_session() as session:
        session.query(DagRun).filter(DagRun.run_id.like("was__%")).delete()
        of_windowed = session.query(DagModel).filter(DagModel.dag_id.like("%_windowed"))
        of_windowed.update({"is_stale": True}, synchronize_session=False)  # its file is gone

    [fails] = [each for each in answer["signs"] if each["said"] == "ingest_orders fails"]
    assert (fails["since"], fails["run_id"]) == (
        (hour - timedelta(hours=3)).isoformat(),
        "was__2",
    )
    assert {"orders", "windowed"} <= {*answer["wrong"]}, "one has no plan yet"
    assert answer["known"] > len(answer["feeds"])
    assert "ingest_orders fails" in page
    assert "run?dag_id=ingest_orders&amp;run_id=was__2" in page
    left = place.client("vera").get("/api/feeds").json()
    assert "windowed" not in left["wrong"], "it never began, and no file has it any more"


@pytest.mark.parametrize("address", ["/docs", "/redoc", "/openapi.json", "/api/nothing"])
def test_there_is_no_page_beside_the_routes(place: PagePlace, address: str) -> None:
    assert place.client("ada").get(address).status_code == 404


@pytest.mark.parametrize("token", ["", "no token at all", "a.b.c"])
def test_a_wrong_token_is_nobodys(place: PagePlace, token: str) -> None:
    client = place.client()
    client.headers["Authorization"] = f"Bearer {token}"
    assert client.get("/api/feeds").status_code in (401, 403)
    client = place.client()
    client.cookies.set("_token", token)
    assert client.get("/").status_code == 307


def test_hostile_texts_are_shown_as_text(story: LedgerStory, place: PagePlace) -> None:
    bad = '<script>alert(1)</script>\u202e" onmouseover=x'
    story.ledger.record_findings(FEED, [finding_of(6, 7, cause=bad, told=bad)])
    story.ledger.record_failure(story.begin(story.planned((0, 10, 20))), bad)
    client = place.client("vera", by_cookie=True)
    for address in ("/", "/feeds/orders", "/findings/2", f"/dag?dag_id={bad}"):
        text = client.get(address).text
        assert "<script>alert" not in text
        assert "\u202e" not in text
    assert "&lt;script&gt;" in client.get("/findings/2").text


def test_an_address_that_is_not_understood_says_which_part(place: PagePlace) -> None:
    client = place.client("ada")
    client.cookies.set("_token", place.token("ada"))
    answer = client.get("/api/feeds/orders/partitions", params={"limit": 10**9})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "What was sent is not understood: query.limit.",
    )
    wrong = client.get("/feeds/orders/find", params={"what": "a thing"})
    assert wrong.status_code == 422
    assert "Feed orders has nothing that is called so. Give a partition and an offset" in wrong.text
    for address in ("/findings/none", f"/api/findings/{2**63}", "/feeds/%00", "/run?dag_id=%00"):
        assert client.get(address).status_code == 422
