"""The pages as HTML: all that the routes answer, as text, with relative links only."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.web import reading
from tallystick.web.partition_list import Search, partitions_of
from tallystick.web.rendering import ASSETS, asset_text, rendered
from tests.contract.test_ledger_reports import a_report
from tests.support.ledger_story import FEED, HOUR, NOON, LedgerStory, finding_of, snapshot_of
from tests.support.waivers import accept

BAD = "<script>alert(1)</script>\u202e\" onmouseover='x"


@pytest.fixture
def pages(story: LedgerStory) -> dict[str, str]:
    """Every page of a feed in trouble, with the same text in every place that takes one."""
    story.open({0: (0, 40), 1: (0, 9)})
    run = Owner(BAD)
    attempt = story.begin(story.planned((0, 0, 10), window=HOUR, owner=run), owner=run)
    story.verify(attempt)
    story.ledger.commit(attempt)
    failing = story.begin(story.planned((0, 10, 20), owner=run), owner=run)
    story.ledger.record_failure(failing, BAD)
    story.ledger.record_look(FEED, snapshot_of({0: (0, 40), 1: (0, 9)}))
    story.ledger.record_findings(
        FEED, [finding_of(0, 5, cause=BAD, told=BAD), finding_of(6, 7, cause=BAD, **{BAD: BAD})]
    )
    accept(story.ledger, 2)
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_LOSS), Owner(BAD))
    ledger = story.ledger
    feed = reading.feed_of_name(ledger, FEED, NOON)
    values: dict[str, tuple[str, dict[str, Any]]] = {
        "feeds": ("/", {"answer": {"feeds": reading.feeds_of(ledger, NOON)}}),
        "feed": (
            "/feeds/orders",
            {
                "answer": feed,
                "found": reading.findings_of(ledger, FEED, 0, 1),
                "partitions": partitions_of(ledger, FEED, Search(limit=1)),
                "batches": reading.batches_of(ledger, FEED, None, 1),
                "search": "",
                "verdict": Verdict.UNKNOWN,
                "verdicts": list(Verdict),
            },
        ),
        "finding": ("/findings/2", {"answer": reading.finding_of_number(ledger, 2)}),
        "run": ("/run", {"answer": reading.run_of(ledger, FEED, Owner(BAD))}),
        "trouble": ("/feeds/x", {"what": BAD, "next_step": BAD}),
    }
    return {
        name: rendered(f"{name}.html", below, **given) for name, (below, given) in values.items()
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
        for _, attributes in tags.found:
            for name in {"src", "href", "action", "data-source"} & set(attributes):
                assert not re.match(r"\w+:|//", attributes[name] or "")


class _Tags(HTMLParser):
    """The tags of a page, each with its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_links_lead_up_to_the_apps_own_address(pages: dict[str, str]) -> None:
    assert '<a href="./">All feeds</a>' in pages["feeds"]
    assert '<a href="../">All feeds</a>' in pages["feed"]
    assert '<a href="feeds/orders">' in pages["run"]
    assert 'href="../findings/1"' in pages["feed"]
    assert 'data-source="../api/feeds/orders/coverage?report=1"' in pages["feed"]


def test_a_page_leads_to_what_it_leaves_out(pages: dict[str, str]) -> None:
    # Also from the tab of a DAG, whose address is another one.
    for link in (
        "findings=1#findings",
        "before=2#batches",
        "search=&amp;verdict=UNKNOWN&amp;offset=1#partitions",
    ):
        assert f'href="../feeds/orders?{link}"' in pages["feed"]
    assert (
        '<form class="controls" method="get" action="../feeds/orders#partitions">' in pages["feed"]
    )


@pytest.mark.parametrize("name", ASSETS)
def test_the_files_of_a_page_ask_nobody_else(name: str) -> None:
    text = asset_text(name)
    assert not re.search(r"https?://|//[a-z]|@import|url\(|eval|innerHTML|document\.write", text)
