"""The page in Airflow, in a real browser: who sees it, where, in which colours, by which keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tallystick.domain.identities import BatchId
from tests.orchestration.browser_place import PASSWORDS, ApiServer, api_server
from tests.orchestration.conftest import show_dags
from tests.support.busy import BUSY_SECONDS
from tests.support.chromium import Person, at, chromium
from tests.support.kafka_topics import wait_until
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, LedgerStory, finding_of, snapshot_of
from tests.support.looks import record_look
from tests.support.report_documents import a_document, a_finding

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]
RUN = "manual__page"
DARK, LIGHT = "rgb(22, 29, 45)", "rgb(255, 255, 255)"
TABS = ("drawings", "partitions", "runs", "batches")
TABS_OF = {
    "Coverage": ["Coverage", "Frontier", "Produced and landed", "Holes by class", "Scrub age"],
    "Partitions": ["Partitions"],
    "Runs and reports": ["Last runs", "Last reports"],
    "Batches": ["Batches"],
}
BATCH = BatchId("0123456789abcdef" * 2)
FEED_TAB = "/dags/ingest_orders/plugin/tallystick-feed"
RUN_TAB = f"/dags/reconcile_orders/runs/{RUN}/plugin/tallystick-run"
PAGES = (
    "/", "/feeds/orders", *(f"/feeds/orders#{tab}" for tab in TABS), "/feeds/orders/reports",
    "/feeds/orders/reports/1",
    "/feeds/orders/changes?earlier=1&later=2", "/findings/1", "/dag?dag_id=ingest_orders",
    "/feeds/orders/find?what=0+5", f"/batches/{BATCH}",
    f"/run?dag_id=ingest_orders&run_id={RUN}", "/run?dag_id=other&run_id=x",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def server(ledger_server: LedgerServer, airflow_database: None) -> Iterator[ApiServer]:
    """Airflow with the DAGs of `orders`, a run of them, and a ledger with something to show."""
    database = ledger_server.fresh()
    _fill(ledger_server.dsn(database))
    show_dags()
    with api_server(ledger_server.dsn(database)) as server:
        server.trigger("reconcile_orders", RUN)
        yield server
    ledger_server.drop(database)


def _fill(dsn: str) -> None:
    """A feed in trouble: findings of long texts, batches, two reports."""
    story = LedgerStory(dsn)
    story.open(dict.fromkeys(range(12), (0, 20)))
    story.freeze(replace(story.batch_of((0, 0, 10), (1, 0, 10)), batch_id=BATCH))
    attempt = story.begin(BATCH)
    story.verify(attempt)
    story.ledger.commit(attempt)
    story.ledger.mark_published(BATCH)
    record_look(story.ledger, FEED, snapshot_of(dict.fromkeys(range(12), (0, 20))))
    path = "/data/landing/orders/" + "a_directory_with_a_long_name" * 4 + "/part-00000.parquet"
    lost = [finding_of(0, 5, partition=each, cause=f"{path} is gone.") for each in (0, 1)]
    story.ledger.record_findings(FEED, lost)
    for findings in ([1], [1, 2]):
        document = a_document(findings=[a_finding(each, cause=path) for each in findings])
        story.ledger.store_report(document)
    story.ledger.close()


@pytest.fixture(scope="module")
def signed_in(browser: Browser, server: ApiServer) -> Any:
    """What a viewer's browser has kept since the log-in."""
    with at(browser, server.url) as vera:
        vera.go("/auth/login")
        vera.sign_in("vera", PASSWORDS["vera"])
        return vera.page.context.storage_state()


@pytest.fixture
def vera(browser: Browser, server: ApiServer, signed_in: Any) -> Iterator[Person]:
    """A viewer who is signed in."""
    look = {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}}
    with at(browser, server.url, storage_state=signed_in, **look) as vera:
        yield vera


def test_nobody_is_led_to_the_log_in_and_back(browser: Browser, server: ApiServer) -> None:
    with at(browser, server.url) as person:
        person.go("/tallystick/feeds/orders")
        assert "/auth/login" in person.page.url
        person.sign_in("ada", PASSWORDS["ada"])
        expect(person.page.get_by_role("heading", level=1)).to_contain_text("orders")
        assert person.page.url == f"{server.url}/tallystick/feeds/orders"


def test_the_navigation_leads_to_all_feeds_and_on_to_a_finding(vera: Person) -> None:
    vera.go("/")
    vera.page.get_by_role("link", name="Tallystick").first.click()
    expect(vera.frame.get_by_role("heading", name="Feeds")).to_be_visible()
    expect(vera.frame.locator("[data-answer=bad]")).to_contain_text(
        "orders: PROVEN_LOSS: 1 trouble (2 findings)"
    )
    vera.frame.get_by_role("row").get_by_role("link", name="orders", exact=True).click()
    expect(vera.frame.locator("#coverage path").first).to_be_attached()
    vera.frame.get_by_role("link", name="1", exact=True).click()
    expect(vera.frame.get_by_role("heading", level=1)).to_contain_text("Finding 1")


def test_an_offset_leads_to_its_file_and_to_its_batch(vera: Person) -> None:
    vera.go("/dags/ingest_orders/plugin/tallystick-feed")
    vera.frame.get_by_label("Where is").fill("orders-1 7")
    vera.frame.get_by_role("button", name="Find").click()
    expect(vera.frame.get_by_role("heading", name="Landed")).to_be_visible()
    expect(vera.frame.locator("#main")).to_contain_text(f"/batch={BATCH}/{BATCH}-")
    vera.frame.get_by_role("link", name=BATCH).click()
    expect(vera.frame.get_by_role("heading", level=1)).to_have_text(f"Batch {BATCH} published")
    expect(vera.frame.locator("#files")).to_contain_text("hdfs dfs -ls /landing/orders/gen=1/dt=")


@pytest.mark.parametrize(
    ("address", "tab", "said"),
    [
        ("/dags/ingest_orders", "tallystick-feed", "orders"),
        (f"/dags/reconcile_orders/runs/{RUN}", "tallystick-run", "A run of orders"),
    ],
)
def test_a_dag_and_a_run_have_their_tab(vera: Person, address: str, tab: str, said: str) -> None:
    vera.go(address)
    vera.page.locator(f"a[href$='/plugin/{tab}']").click()
    expect(vera.frame.get_by_role("heading", level=1)).to_contain_text(said)


@pytest.mark.parametrize(
    ("tab", "name", "leads"),
    [
        (RUN_TAB, f"reconcile_orders/{RUN}", f"/dags/reconcile_orders/runs/{RUN}"),
        (FEED_TAB, "reconcile_orders", "/dags/reconcile_orders"),
        ("/plugin/tallystick#/tallystick/feeds/orders", "ingest_orders", "/dags/ingest_orders"),
    ],
)
def test_a_link_leads_out_of_the_frame_to_airflows_own_page(
    vera: Person, tab: str, name: str, leads: str
) -> None:
    vera.go(tab)
    vera.frame.locator(".facts").get_by_role("link", name=name, exact=True).click()
    vera.page.wait_for_url(lambda url: urlsplit(url).path.rstrip("/") == leads)
    expect(vera.page.locator("iframe")).to_have_count(0)
    expect(vera.page.get_by_text(leads.split("/")[2]).first).to_be_visible()


@pytest.mark.parametrize("tab", [FEED_TAB, RUN_TAB, "/plugin/tallystick"])
def test_the_address_bar_keeps_where_one_is(vera: Person, tab: str) -> None:
    heading = vera.frame.get_by_role("heading", level=1)
    vera.go(tab)
    expect(heading).to_be_visible()
    entry = heading.inner_text()
    if tab == RUN_TAB:
        vera.frame.get_by_role("link", name="orders", exact=True).click()
    if tab == "/plugin/tallystick":
        vera.frame.get_by_role("row").get_by_role("link", name="orders", exact=True).click()
    vera.frame.get_by_role("link", name="1", exact=True).click()
    expect(heading).to_contain_text("Finding 1")
    expect(vera.page).to_have_url(re.compile(r"/tallystick/findings/1$"))
    vera.page.reload()
    expect(heading).to_contain_text("Finding 1")
    vera.go("/plugins")  # a shared link is opened from anywhere
    vera.page.go_back()
    expect(heading).to_contain_text("Finding 1")
    vera.frame.get_by_role("link", name="All feeds").click()
    expect(heading).to_contain_text("Feeds")
    vera.page.go_back()
    expect(heading).to_contain_text("Finding 1")
    expect(vera.page).to_have_url(re.compile(r"/tallystick/findings/1$"))
    vera.go(tab)
    expect(heading).to_have_text(entry)
    assert "#" not in vera.page.url


@pytest.mark.parametrize("place", [FEED_TAB, "/plugin/tallystick#/tallystick/feeds/orders"])
def test_the_address_bar_keeps_the_part_of_a_page_too(vera: Person, place: str) -> None:
    vera.go(place)
    vera.frame.get_by_role("navigation", name="Parts").get_by_role("link", name="Batches").click()
    expect(vera.page).to_have_url(re.compile("#.*batches$"))
    vera.page.reload()
    expect(vera.frame.get_by_role("heading", name="Batches")).to_be_visible()


@pytest.mark.parametrize(
    "hash",
    [
        "/auth/logout", "//elsewhere.example/tallystick/", "https://elsewhere.example/tallystick/",
        "/tallystick/../auth/logout", "/tallystick/api/feeds", "javascript:alert(1)", "/tallystick",
    ],
)  # fmt: skip
def test_an_address_that_is_none_of_our_pages_is_ignored(vera: Person, hash: str) -> None:
    vera.go(f"{RUN_TAB}#{hash}")
    expect(vera.frame.get_by_role("heading", level=1)).to_have_text("A run of orders")
    expect(vera.page).to_have_url(f"{vera.url}{RUN_TAB}")


@pytest.mark.parametrize(
    ("setting", "ends"),
    [
        ('"Asia/Tokyo"', "+09:00"),
        ('"UTC"', "Z"),
        (None, "-03:30"),  # the browser's own
    ],
)
def test_times_are_told_in_the_zone_of_airflow(
    browser: Browser, server: ApiServer, signed_in: Any, setting: str | None, ends: str
) -> None:
    look = {"storage_state": signed_in, "timezone_id": "America/St_Johns"}
    with at(browser, server.url, **look) as vera:
        if setting:
            vera.page.add_init_script(f"localStorage.setItem('timezone', '{setting}')")
        vera.go("/dags/ingest_orders/plugin/tallystick-feed")
        heard = vera.frame.locator("#reports time").first
        expect(heard).to_have_text(re.compile(rf"^[\d-]+ [\d:]+{re.escape(ends)}$"))
        told = datetime.fromisoformat(heard.inner_text())
        assert told == datetime.fromisoformat(heard.get_attribute("datetime") or "").replace(
            microsecond=0
        )
        expect(heard).to_have_attribute("title", re.compile(r", \d+ d ago$"))
        expect(vera.frame.locator(".facts time").first).to_have_text(re.compile(r", \d+ d ago$"))


def test_without_a_script_times_are_utc_and_say_so(
    browser: Browser, server: ApiServer, signed_in: Any
) -> None:
    with at(browser, server.url, storage_state=signed_in, java_script_enabled=False) as vera:
        for address in ("/tallystick/", "/tallystick/feeds/orders"):
            vera.go(address)
            times = vera.page.locator("time").all_inner_texts()
            assert times
            assert not [each for each in times if not re.fullmatch(r"[\d-]+ [\d:]+Z", each)]


def test_a_page_of_now_is_asked_for_again_and_the_reader_keeps_what_they_do(vera: Person) -> None:
    asked = []

    def answer(route: Route) -> None:
        found = route.fetch()
        if route.request.resource_type == "fetch":
            asked.append(route.request.url)
        text = found.text().replace("PROVEN_LOSS", f"LOSS_{len(asked)}") if asked else found.text()
        route.fulfill(response=found, body=text)

    vera.page.clock.install()
    vera.page.route("**/tallystick/feeds/orders*", answer)
    vera.page.route("**/tallystick/", answer)
    vera.go("/tallystick/feeds/orders?search=1#partitions")
    vera.page.get_by_label("Verdict").select_option("UNKNOWN")
    vera.page.get_by_role("region", name="Partitions").focus()
    plane = vera.page.locator("#coverage-plane").element_handle()
    vera.page.clock.run_for(61_000)
    expect(vera.page.locator("h1")).to_contain_text("LOSS_1")
    expect(vera.page.locator("#findings")).to_contain_text("LOSS_1")
    assert plane
    assert plane.evaluate("plane => plane.isConnected"), "drawings stay"
    assert vera.page.get_by_label("Verdict").input_value() == "UNKNOWN"
    expect(vera.page.get_by_role("region", name="Partitions")).to_be_focused()
    assert asked == [f"{vera.url}/tallystick/feeds/orders?search=1"]

    vera.go("/tallystick/feeds/orders#runs")
    vera.page.clock.run_for(61_000)
    expect(vera.page.locator("h1")).to_contain_text("LOSS_2")
    expect(vera.page.get_by_role("heading", name="Last runs")).to_be_visible()  # the same tab

    vera.go("/tallystick/")
    vera.page.clock.run_for(61_000)
    expect(vera.page.locator(".signs")).to_contain_text("LOSS_3")
    expect(vera.page.locator("#feeds")).to_contain_text("LOSS_3")
    hide = "Object.defineProperty(document, 'visibilityState', {get: () => 'hidden'})"
    vera.page.evaluate(hide)
    vera.page.clock.run_for(300_000)
    assert len(asked) == 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_wears_airflows_theme(vera: Person, theme: str) -> None:
    vera.page.add_init_script(f"localStorage.setItem('theme', '{theme}')")
    vera.go("/plugin/tallystick")
    shown = DARK if theme == "dark" else LIGHT
    expect(vera.frame.locator("body")).to_have_css("background-color", shown)
    other, others = ("light", LIGHT) if theme == "dark" else ("dark", DARK)
    vera.page.evaluate(f"document.documentElement.classList.replace('{theme}', '{other}')")
    expect(vera.frame.locator("body")).to_have_css("background-color", others)


def test_no_page_scrolls_sideways_on_a_phone(vera: Person) -> None:
    vera.page.set_viewport_size({"width": 420, "height": 800})
    for address in PAGES:
        vera.go(f"/tallystick{address}")
        wide = vera.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 420, address


def test_a_keyboard_reaches_everything(vera: Person) -> None:
    vera.go("/tallystick/feeds/orders")
    keys, page = vera.page.keyboard, vera.page
    keys.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to the content")).to_be_in_viewport()
    keys.press("Enter")
    expect(page.locator("main")).to_be_focused()
    reached = set()
    for tab in ("findings", *TABS):
        vera.go(f"/tallystick/feeds/orders#{tab}")
        reached |= set(reached_by_tab(page))
    assert {"coverage-plane", "band-plane", "Partitions", "Batches", "search", "verdict"} <= reached
    page.get_by_role("link", name="Coverage").click()
    page.locator("#coverage-plane").focus()
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    keys.press("End")
    expect(page.locator("#coverage-told")).to_contain_text("partition 2: UNKNOWN")


def reached_by_tab(page: Page) -> Iterator[str]:
    """Everything from where the page is on; each shows that it has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        name, outline = page.evaluate(
            "(() => { const at = document.activeElement; return [at.id || at.ariaLabel ||"
            " at.name || at.textContent, getComputedStyle(at).outlineStyle]; })()"
        )
        assert outline != "none", name
        yield name


def test_a_page_shows_one_part_at_a_time_and_its_address_says_which(vera: Person) -> None:
    vera.go("/tallystick/feeds/orders")
    page, shown = vera.page, vera.page.locator(".tab:visible h2")
    expect(shown).to_contain_text(["Troubles"])
    for tab, heads in TABS_OF.items():
        page.get_by_role("navigation", name="Parts").get_by_role("link", name=tab).click()
        expect(shown).to_have_text(heads)
        expect(page.locator(".tabs [aria-current]")).to_have_text(tab)
        expect(page.get_by_role("navigation", name="Parts")).to_be_in_viewport()
    page.reload()
    expect(shown).to_have_text(["Batches"])
    expect(page.locator(".tabs [aria-current]")).to_have_text("Batches")
    page.go_back()
    expect(shown).to_contain_text(["Last runs"])
    vera.go("/tallystick/feeds/orders?search=1#partitions")
    expect(shown).to_have_text(["Partitions"])


def test_two_reports_are_chosen_and_compared(vera: Person) -> None:
    vera.go("/tallystick/feeds/orders")
    vera.page.get_by_role("link", name="As of a stored report, or two compared").click()
    vera.page.get_by_role("button", name="Compare the two").click()
    expect(vera.page.locator("#new").get_by_role("link", name="2", exact=True)).to_be_visible()
    vera.page.get_by_role("link", name="reports").click()
    vera.page.get_by_role("row").nth(2).get_by_role("link").first.click()
    expect(vera.page.locator(".warning")).to_contain_text("report 1, as it was stored")
    expect(vera.page.locator("#findings article")).to_have_count(1)


def test_partitions_are_searched(vera: Person) -> None:
    vera.go("/tallystick/feeds/orders#partitions")
    vera.page.get_by_label("Number begins with").fill("1")
    vera.page.get_by_label("Verdict").select_option("UNKNOWN")
    vera.page.get_by_role("button", name="Search").click()
    rows = vera.page.get_by_role("region", name="Partitions").locator("tbody th")
    expect(rows).to_have_text(["10", "11"])


def test_what_a_page_loads_is_kept_by_the_browser(vera: Person) -> None:
    vera.go("/tallystick/feeds/orders")
    assert sorted(loaded(vera)) == ["page.css", "page.js"]
    vera.go("/tallystick/findings/1")
    assert loaded(vera) == {"page.css": 0, "page.js": 0}


FOLLOWED = ('id="act" aria-live="polite"', 'id="act" aria-live="polite" data-follow')


@pytest.mark.parametrize(
    "last",
    [("data-digest=", 'data-digest="0badc0de" data-was='), FOLLOWED[::-1]],
    ids=["other evidence", "it is over"],
)
def test_a_followed_page_is_loaded_anew_in_the_end_and_not_by_an_answer_that_failed(
    vera: Person, last: tuple[str, str]
) -> None:
    asked: list[str] = []

    def answer(route: Route) -> None:
        asked.append(route.request.resource_type)
        if len(asked) == 2:
            route.fulfill(status=503, body="<header>The ledger does not answer.</header>")
            return
        found = route.fetch()
        text = found.text().replace(*FOLLOWED)
        if len(asked) == 3:
            text = text.replace(*last)
        route.fulfill(response=found, body=found.text() if len(asked) > 3 else text)

    vera.page.route("**/tallystick/findings/1", answer)
    with vera.page.expect_response(lambda each: each.status == 503):
        vera.go("/tallystick/findings/1")
        vera.page.get_by_text("What to do").wait_for()
    expect(vera.page.get_by_role("heading", level=1)).to_contain_text("Finding 1")

    def is_loaded_anew() -> bool:
        vera.page.wait_for_timeout(50)  # which answers what the page asks
        return asked.count("document") == 2

    wait_until(is_loaded_anew, "the page is loaded anew", seconds=BUSY_SECONDS)
    expect(vera.page.locator("#act")).not_to_have_attribute("data-follow", "")
    assert [each for each in vera.complaints if " 503 " not in each] == []
    vera.complaints.clear()  # of the 503, which was asked for
    assert asked == ["document", "fetch", "fetch", "document"]


def loaded(person: Person) -> dict[str, int]:
    """How many bytes came over the wire of each file that the page names."""
    # A browser asks for the host's icon when it likes.
    entries = person.page.evaluate(
        "performance.getEntriesByType('resource').map((each) => [each.name, each.transferSize])"
    )
    names = {name.rpartition("/")[2].partition("?")[0]: size for name, size in entries}
    return {name: size for name, size in names.items() if name != "favicon.ico"}
