"""The pages as HTML: all that the routes answer, as text, with relative links only."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.looks import CameLate
from tallystick.domain.report.whereabouts import Place
from tallystick.domain.rules.waivers import WaiverWish
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.orchestration.dag_ids import KINDS
from tallystick.report.whereabouts import FindDocument, PlacePart
from tallystick.report.wording import late_text
from tallystick.web import landed, reading, stored_reports
from tallystick.web.answers import (
    AskedRunPart,
    DryRunLine,
    DryRunPart,
    FailedTry,
    RepairsAnswer,
    RunAnswer,
)
from tallystick.web.history import history_of, newest_first
from tallystick.web.pages import ASSETS, Acts, asset_text, rendered
from tallystick.web.reading import Search, partitions_of
from tests.contract.test_ledger_reports import a_report
from tests.support.ledger_story import FEED, HOUR, NOON, TOPIC, LedgerStory, finding_of, snapshot_of
from tests.support.looks import record_look
from tests.support.report_documents import a_document, a_finding
from tests.support.waivers import accept

TEMPLATES = {"open": "finding"}
RUNBOOK = "https://wiki.example/orders"
BAD = "<script>alert(1)</script>\u202e\" onmouseover='x"


IN_FILE = FeedInFile(
    TOPIC,
    BAD,
    Isolation.READ_COMMITTED,
    "window_end",
    "0 * * * *",
    "Asia/Tokyo",
    7200.0,
    {BAD: BAD, "runbook": RUNBOOK},
)
AN_ASKED_RUN = AskedRunPart(
    dag_id="reconcile_orders", run_id="r1", state="success", is_dry_run=False, findings=[],
    evidence=[], asked_by=None, queued_at=NOON, ended_at=NOON, plan=None,
)  # fmt: skip


def a_run(**more: Any) -> RunAnswer:
    nothing: dict[str, Any] = {"windows": [], "planned_at": None, "report": None, "findings": []}
    return RunAnswer(
        feed="orders", owner="reconcile_orders/r1", **{"batches": [], "ranges": {}} | nothing | more
    )


def a_failed_try(**more: Any) -> FailedTry:
    told = {"task_id": "plan", "map_index": None, "try_number": 1, "is_tried_again": False}
    return FailedTry(**{**told, "sentence": "The broker is away.", **more})


@pytest.fixture
def pages(story: LedgerStory) -> dict[str, str]:
    """Every page of a feed in trouble, with the same text in every place that takes one."""
    story.open({0: (0, 40), 1: (0, 9)})
    run = Owner(BAD)
    with story.ledger.planning(FEED, TOPIC) as session:
        session.describe(IN_FILE)
    attempt = story.begin(story.planned((0, 0, 10), window=HOUR, owner=run), owner=run)
    story.verify(attempt)
    story.ledger.commit(attempt)
    failing = story.begin(story.planned((0, 10, 20), owner=run), owner=run)
    story.ledger.record_failure(failing, BAD)
    record_look(story.ledger, FEED, snapshot_of({0: (0, 40), 1: (0, 9)}))
    story.ledger.record_findings(
        FEED,
        [
            finding_of(0, 5, cause=BAD, told=BAD),
            finding_of(6, 7, cause=BAD, verdict=Verdict.SUSPECTED, **{BAD: BAD}),
        ],
    )
    accept(story.ledger, 2)
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_LOSS), Owner(BAD))
    story.ledger.store_report(
        a_document(
            partitions=3,
            columns=4,
            findings=[a_finding(each, cause=BAD, next_step=BAD) for each in (1, 2, 3)],
        ),
        Owner(BAD),
    )
    ledger = story.ledger
    hostile = ledger.report_value(FEED, 2)
    assert hostile
    reading_reports = stored_reports.reports_of(ledger, FEED, None, 1)
    read = ledger.finding(1)
    assert read
    later = datetime(2199, 1, 1, tzinfo=UTC)
    ledger.ask_for_waivers(
        [WaiverWish(finding_id=1, reason=BAD, asked_by=BAD, expires_at=later, digest=read.digest)]
    )
    asked = AskedRunPart(
        dag_id=BAD,
        run_id=BAD,
        state="success",
        is_dry_run=True,
        findings=[1],
        evidence=[read.digest],
        asked_by=BAD,
        queued_at=NOON,
        ended_at=NOON,
        plan=DryRunPart(
            lines=(DryRunLine(text=BAD, is_warning=True),), left_out=2, evidence=(read.digest,)
        ),
    )
    repairs = RepairsAnswer(feed=FEED, dag_id=BAD, is_paused=True, runs=[asked])
    acts = Acts("grace", True, repairs, lambda address: f"token of {address}")
    of_run = reading.run_of(ledger, FEED, Owner(BAD)).but(
        asked=asked,
        asked_findings=reading.findings_asked_of(ledger, FEED, asked),
        failed_tries=[a_failed_try(task_id=BAD, sentence=BAD)],
    )
    closed = [
        replace(each, state=FindingState.REMEDIED, closed_at=NOON, closed_by=BAD, closed_in=run)
        for each in ledger.told_findings(ledger.findings(FEED))
    ]
    feed = reading.feed_of_name(ledger, FEED, NOON)
    values: dict[str, tuple[str, dict[str, Any]]] = {
        "feeds": (
            "/",
            {
                "answer": reading.in_short(
                    reading.feeds_of(ledger, reading.heads_of_list(ledger), NOON), {}, {}, NOON
                )
            },
        ),
        "feed": (
            "/feeds/orders",
            {
                "answer": feed,
                "signs": (),
                "troubles": reading.troubles_standing(ledger, FEED),
                "skipped": 0,
                "shown_troubles": 1,
                "acts": acts,
                "partitions": partitions_of(ledger, FEED, Search(limit=1)),
                "batches": landed.batches_of(ledger, FEED, None, 1),
                "reports": reading_reports.reports,
                "drawn": stored_reports.NewestDrawings().of(ledger, FEED),
                "search": "",
                "verdict": Verdict.UNKNOWN,
                "verdicts": list(Verdict),
                "now": {},
                "may_retire": True,
            },
        ),
        "reports": ("/feeds/orders/reports", {"answer": reading_reports}),
        "report": (
            "/feeds/orders/reports/2",
            {
                "number": 2,
                "asked": Search(limit=1, verdict=Verdict.UNKNOWN),
                "verdicts": list(Verdict),
                **stored_reports.seen_in(hostile, Search(limit=1), 0, 1),
            },
        ),
        "changes": (
            "/feeds/orders/changes",
            {"answer": stored_reports.changes_of(ledger, FEED, 1, 2)},
        ),
        "history": (
            "/feeds/orders/history",
            {
                "answer": history_of(ledger, FEED, None),
                "troubles": newest_first(closed),
            },
        ),
        "finding": (
            "/findings/2",
            {
                "answer": reading.finding_of_number(ledger, 2, "grace"),
                "acts": acts,
                "wrong": "",
                "sent": {},
            },
        ),
        "open": (
            "/findings/1",
            {
                "answer": reading.finding_of_number(ledger, 1, "grace"),
                "acts": acts,
                "wrong": BAD,
                "sent": {"reason": BAD, "until": BAD},
            },
        ),
        "batch": (
            f"/batches/{failing.batch_id}",
            {"answer": landed.batch_of(ledger, failing.batch_id, FEED)},
        ),
        "find": (
            "/feeds/orders/find",
            {
                "answer": FindDocument(
                    feed=FEED, asked=BAD, places=[PlacePart(state=Place.LOST, said=BAD)]
                )
            },
        ),
        "run": ("/run", {"answer": of_run, "acts": acts}),
        "no_plan": ("/dag", {"feed": BAD, "signs": ()}),
        "other_dag": ("/dag", {"dag_id": BAD, "kinds": KINDS}),
        "refusal": ("/feeds/x", {"what": BAD, "next_step": BAD}),
    }
    return {
        name: rendered(f"{TEMPLATES.get(name, name)}.html", below, **given)
        for name, (below, given) in values.items()
    }


def test_every_text_is_shown_as_text(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        assert "<script>alert" not in text
        assert "\u202e" not in text
        assert "onmouseover='x" not in text
        assert ("&lt;script&gt;alert(1)" in text) == (name != "feeds")


def test_nothing_is_loaded_from_elsewhere_and_no_script_stands_in_a_page(
    pages: dict[str, str],
) -> None:
    for text in pages.values():
        tags = _Tags()
        tags.feed(text)
        named = {name for _, attributes in tags.found for name in attributes}
        assert not [name for name in named if name.startswith("on") or name == "style"]
        assert [set(each) for tag, each in tags.found if tag == "script"] == [{"src", "defer"}]
        assert not [tag for tag, _ in tags.found if tag in ("style", "iframe", "base", "object")]
        for tag, attributes in tags.found:
            if (tag, attributes.get("rel")) == ("a", "noopener noreferrer"):
                assert attributes["href"] == RUNBOOK  # the only link that leads away
                continue
            for name in {"src", "href", "action"} & set(attributes):
                assert not re.match(r"\w+:|//", attributes[name] or "")


class _Tags(HTMLParser):
    """The tags of a page, each with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_links_lead_up_to_the_apps_own_address(pages: dict[str, str]) -> None:
    assert "All feeds" not in pages["feeds"]
    assert '<a href="../">All feeds</a>' in pages["feed"]
    assert '<a href="feeds/orders">' in pages["run"]
    assert 'href="../findings/1"' in pages["feed"]
    assert 'href="../feeds/orders/reports/2"' in pages["feed"]
    assert '<a href="../../feeds/orders">' in pages["reports"]
    assert '<a href="../../../feeds/orders">' in pages["report"]


def test_a_runs_page_leads_back_into_airflow() -> None:
    failed = a_failed_try(task_id="batch.land", map_index=2, try_number=3)
    killed = a_failed_try(is_tried_again=True, sentence=None)
    answer = a_run(asked=AN_ASKED_RUN, failed_tries=[failed, killed])
    text = rendered("run.html", "/run", answer=answer, acts=None)
    run = "../dags/reconcile_orders/runs/r1"
    assert f'<a href="{run}" target="_top">reconcile_orders/r1</a>' in text
    assert (
        "batch.land[2] has failed: The broker is away."
        f' <a href="{run}/tasks/batch.land/mapped/2?try_number=3" target="_top">Its log</a>'
    ) in text
    assert (
        "plan has failed in try 1 (tried again): no sentence is kept,"
        f' read <a href="{run}/tasks/plan?try_number=1" target="_top">its log</a>.'
    ) in text
    assert text.index("The broker is away") < text.index("<main")


def test_a_page_leads_to_what_it_leaves_out(pages: dict[str, str]) -> None:
    # Also from the tab of a DAG, whose address is another one.
    for link in (
        "findings=1#findings",
        "before=2#batches",
        "search=&amp;verdict=UNKNOWN&amp;offset=1#partitions",
    ):
        assert f'href="../feeds/orders?{link}"' in pages["feed"]
    assert 'href="../../feeds/orders/reports?before=2"' in pages["reports"]
    for link in ("findings=1#findings", "search=&amp;verdict=UNKNOWN&amp;offset=1#partitions"):
        assert f'href="../../../feeds/orders/reports/2?{link}"' in pages["report"]
    assert (
        '<form class="controls" method="get" action="../feeds/orders#partitions">' in pages["feed"]
    )


@pytest.mark.parametrize("name", ASSETS)
def test_the_files_of_a_page_ask_nobody_else(name: str) -> None:
    text = asset_text(name)
    assert not re.search(r"https?://|//[a-z]|@import|url\(|eval|innerHTML|document\.write", text)


def test_a_form_is_sent_by_post_to_where_its_token_is_of(pages: dict[str, str]) -> None:
    found = []
    for text in pages.values():
        for form in re.findall(r'<form class="act.*?</form>', text, re.DOTALL):
            assert 'method="post"' in form
            action = re.search(r'action="([./]*)([^"]+)"', form)
            assert action
            assert f'name="form_token" value="token of /{action[2]}"' in form
            found.append(action[2])
    assert "findings/1/waiver-requests/1/approve" in found
    assert "feeds/orders/repair" in found


def test_each_field_has_a_label_and_each_button_words(pages: dict[str, str]) -> None:
    for text in pages.values():
        for field in re.findall(r"<(?:input|textarea|select)\b[^>]*>", text):
            if 'type="hidden"' not in field and "aria-label=" not in field:
                before = text[: text.index(field)]
                assert before.count("<label") > before.count("</label")
        assert not re.search(r"<button[^>]*>\s*</button>", text)


def test_a_trouble_of_many_findings_folds_their_numbers() -> None:
    found = [replace(a_finding(each), number=each, trouble="one") for each in range(1, 41)]

    text = rendered("run.html", "/run", answer=a_run(findings=found), acts=None)

    title, _, fold = text.partition("<details><summary>40 findings</summary>")
    assert "findings/" not in title
    numbers, _, _ = fold.partition("</details>")
    assert numbers.count('href="findings/') == 40


def test_a_run_has_no_card_for_its_state_alone_and_no_id_for_a_title() -> None:
    text = rendered("run.html", "/run", answer=a_run(asked=AN_ASKED_RUN), acts=None)
    assert "<h1>A run of orders</h1>" in text
    assert "<div><dt>State</dt><dd>success</dd></div>" in text
    assert 'id="act"' not in text
    assert "Planned</dt>" not in text

    running = AN_ASKED_RUN.but(state="running")
    text = rendered("run.html", "/run", answer=a_run(asked=running), acts=None)
    assert re.search(r'id="act"[^>]* data-follow>.*This page follows the run', text, re.DOTALL)


def test_a_feed_says_where_when_and_how_it_lands(pages: dict[str, str]) -> None:
    assert "0 * * * * in Asia/Tokyo, until window_end, complete within 2 h 0 min" in pages["feed"]
    assert "<dd>read_committed</dd>" in pages["feed"]
    assert "/orders</dd>" in pages["feed"]


def test_what_two_people_have_accepted_is_told_beside_what_is_wrong(
    pages: dict[str, str],
) -> None:
    told = 'Accepted by two people: <a href="feeds/orders">orders</a> (1 finding).'
    assert told in pages["feeds"].partition("<main")[0]
    assert "<dt>Accepted</dt><dd>1 finding</dd>" in pages["feed"]


def test_the_list_says_what_its_numbers_count(pages: dict[str, str]) -> None:
    assert ": 0 of 1 batch</span>" in pages["feeds"]
    assert re.search(r"<th[^>]*>published by the last runs</th>", pages["feeds"])


def test_a_button_that_changes_data_looks_unlike_one_that_asks(pages: dict[str, str]) -> None:
    buttons = {
        words: attributes
        for attributes, words in re.findall(r"<button([^>]*)>([^<]+)<", pages["open"])
    }
    primary = [words.split()[0] for words, each in buttons.items() if "primary" in each]
    assert primary == ["Approve"]
    assert "Decline it" in buttons


def test_a_finding_says_why_once_in_whole_sentences(pages: dict[str, str]) -> None:
    for name in ("open", "finding"):
        assert len(re.findall(r">\s*Why\b", pages[name])) == 1
        assert re.search(r"\(level L\d\)\. It is no finding when: [^<]+\.</p>", pages[name])


def test_no_hole_has_a_verdicts_colour() -> None:
    for theme in asset_text("page.css").split("@media")[:2]:
        colours = dict(re.findall(r"--(\w+): #(\w{6});", theme))
        rgb = {name: bytes.fromhex(each) for name, each in colours.items()}
        for hole in ("control", "aborted", "compacted"):
            for verdict in Verdict:
                apart = zip(rgb[hole], rgb[verdict.value], strict=True)
                assert sum((one - other) ** 2 for one, other in apart) > 40**2, (hole, verdict)


def report_page(document: ReportDocument) -> str:
    return rendered(
        "report.html",
        "/feeds/orders/reports/2",
        number=2,
        asked=Search(),
        verdicts=list(Verdict),
        **stored_reports.seen_in(json.loads(document.to_json()), Search(), 0, 5),
    )


def test_a_reports_findings_that_are_on_no_record_are_shown() -> None:
    unknown = [
        replace(a_finding(each), number=None, first_seen_at=None, last_confirmed_at=None)
        for each in (1, 2)
    ]

    text = report_page(a_document(findings=unknown))

    assert "not on record" in text
    assert "#act" not in text


def test_a_report_says_by_what_a_feed_is_complete_and_what_came_late() -> None:
    document = a_document()
    late = CameLate(None, 3, document.taken_at, BatchId("b" * 16))

    told = report_page(replace(document, complete_by=CompleteBy.RECORD_TIME, late=late))

    assert "by record time" in told
    assert late_text(late) in told
    assert "by record time" not in report_page(document)
    assert "Late rows" not in report_page(document)


def test_a_report_leads_to_a_finding_that_is_on_record(pages: dict[str, str]) -> None:
    assert 'href="../../../findings/1#act"' in pages["report"]
    assert "findings/None" not in "".join(pages.values())


def test_offsets_that_went_back_are_told_so(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    document = a_document()
    back = replace(
        document,
        partitions=[replace(each, frontier=each.frontier - 1) for each in document.partitions],
    )
    numbers = [story.ledger.store_report(each) for each in (document, back)]
    answer = stored_reports.changes_of(story.ledger, FEED, *numbers)
    assert answer
    text = rendered("changes.html", "/feeds/orders/changes", answer=answer)
    assert f"{len(document.partitions)} offsets back" in text
