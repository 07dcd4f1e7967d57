"""Who sees what: every route of the app, for nobody, for a viewer, for a user of another DAG."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.test_ledger_reports import a_report
from tests.orchestration.page_place import PagePlace
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory, finding_of, snapshot_of
from tests.support.repository import DOCS

pytestmark = [
    pytest.mark.usefixtures("airflow_database"),
    pytest.mark.filterwarnings("default"),
]
RUN = "dag_id=ingest_orders&run_id=manual__1"
# One address for each route; a new route has none, and the test says so.
EXAMPLES = {
    "/api/feeds": "/api/feeds",
    "/api/feeds/{feed}": "/api/feeds/orders",
    "/api/feeds/{feed}/partitions": "/api/feeds/orders/partitions",
    "/api/feeds/{feed}/batches": "/api/feeds/orders/batches",
    "/api/feeds/{feed}/findings": "/api/feeds/orders/findings",
    "/api/feeds/{feed}/coverage": "/api/feeds/orders/coverage",
    "/api/feeds/{feed}/reports/{number}": "/api/feeds/orders/reports/1",
    "/api/findings/{number}": "/api/findings/1",
    "/api/run": f"/api/run?{RUN}",
    "/": "/",
    "/feeds/{feed}": "/feeds/orders",
    "/findings/{number}": "/findings/1",
    "/dag": "/dag?dag_id=ingest_orders",
    "/run": f"/run?{RUN}",
    "/assets/{name}": "/assets/page.js",
}
# What they answer to who may see no feed of the ledger.
OPEN_TO_ALL = {"/", "/api/feeds", "/assets/{name}"}


@pytest.fixture(scope="module")
def story(ledger_server: LedgerServer) -> Iterator[LedgerStory]:
    """A feed with a batch, a finding and a report."""
    database = ledger_server.fresh()
    story = LedgerStory(ledger_server.dsn(database))
    story.open({0: (0, 20)})
    story.committed((0, 0, 10))
    story.ledger.record_look(FEED, snapshot_of({0: (0, 20)}))
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    story.ledger.store_report(a_report())
    yield story
    story.ledger.close()
    ledger_server.drop(database)


@pytest.fixture(scope="module")
def place(story: LedgerStory) -> PagePlace:
    return PagePlace(story.dsn)


def paths(place: PagePlace) -> list[str]:
    found = [(route.path, route.methods) for route in place.app.routes]  # type: ignore[attr-defined]
    assert all(methods == {"GET"} for _, methods in found)
    return [path for path, _ in found]


def test_every_route_is_in_this_test(place: PagePlace) -> None:
    assert sorted(paths(place)) == sorted(EXAMPLES)


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


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_no_route_changes_anything(place: PagePlace, method: str) -> None:
    client = place.client("ada")
    assert {client.request(method, each).status_code for each in EXAMPLES.values()} == {405}


def test_every_route_is_documented() -> None:
    text = (DOCS / "page.md").read_text()
    assert not [path for path in EXAMPLES if f"`{path}`" not in text]


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
        "The address is not understood: query.limit.",
    )
    for address in ("/findings/none", f"/api/findings/{2**63}", "/feeds/%00", "/run?dag_id=%00"):
        assert client.get(address).status_code == 422
