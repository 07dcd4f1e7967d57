"""Whatever a topic, a header, a file or another program is called: no face lets it do anything."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tallystick.domain.report.document import ComparedPart, ReportDocument
from tallystick.domain.verdicts import Verdict
from tallystick.report.faces import FACES, face_of
from tallystick.report.safe_text import visible
from tests.support.report_documents import a_document, a_finding, a_partition

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</template></title></style></textarea><img src=x onerror=alert(1)>",
    "\" onmouseover=alert(1) x='",
    "<!--<script>",
    "{{ 7 * 7 }}{% raw %}",
    "a\u2028b\u2029c",
    "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "report\u202etxt.exe",
    "nul \x00 and half a pair \ud800",
    "=HYPERLINK(\"http://example.com\",\"click\")",
    "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "  =1+1", "\r=1", "\uff1d1+1", "|calc",
    "one\r\ntwo,three;\"four\"",
]  # fmt: skip


def poisoned(text: str, count: int = 1) -> ReportDocument:
    """A report with this text in every place that takes one."""
    finding = a_finding(
        name=text, code=text, cause=text, next_step=text, subject=text, feed=text, topic=text,
        evidence={text: [text, {text: text}]},
    )  # fmt: skip
    whole = a_finding(
        name=text, cause=text, next_step=text, subject=text, feed=text, topic=text,
        evidence_digest=text, closed_by=text, partition=None, generation=None,
        from_offset=None, until_offset=None, number=None, first_seen_at=None,
        last_confirmed_at=None, verdict=Verdict.UNKNOWN,
    )  # fmt: skip
    return replace(
        a_document(columns=6),
        feed=text,
        topic=text,
        held_back_by=(text,),
        levels=(text,),
        unheard=(text,),
        findings=(*(replace(finding, trouble=f"{text}{each}") for each in range(count)), whole),
        second_reader=ComparedPart(1, 2, 3, (text,)),
        partitions=(a_partition(state=text, holes={text: 3}, checked_at={text: None}),),
    )


class Page(HTMLParser):
    """What a browser would make of the page: its elements and their attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[str, ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(name for name, _ in attrs)))


def shape(html: str) -> list[tuple[str, tuple[str, ...]]]:
    page = Page()
    page.feed(html)
    return page.found


def policy(html: str) -> str:
    return html.split('Content-Security-Policy" content="')[1].split('"')[0]


def scripts(html: str) -> list[str]:
    return re.findall(r"<script>(.*?)</script>", html, re.DOTALL)


@pytest.fixture(scope="module")
def harmless() -> str:
    return face_of(poisoned("harmless"), "html")


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_texts_change_no_element_no_script_and_no_policy(text: str, harmless: str) -> None:
    hostile = face_of(poisoned(text), "html")

    assert shape(hostile) == shape(harmless)
    assert not [name for _, names in shape(hostile) for name in names if name.startswith("on")]
    assert scripts(hostile) == scripts(harmless)
    assert policy(hostile) == policy(harmless)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", hostile)
    hostile.encode()


def test_what_is_beyond_the_page_is_packed_and_comes_back_whole() -> None:
    text = HOSTILE[1]
    html = face_of(poisoned(text, count=250), "html")

    packed = html.split('id="rest">')[1].split("<")[0]
    rest = json.loads(gzip.decompress(base64.b64decode(packed)))

    assert len(rest["findings"]) == 51
    assert rest["findings"][0]["cause"] == text
    assert rest["partitions"][0][2] == f"1 {text}"


def test_the_drawings_are_given_no_text_from_outside() -> None:
    html = face_of(poisoned("from outside"), "html")

    drawings = re.findall("<svg.*?</svg>", html, re.DOTALL)

    assert len(drawings) == 12
    assert "from outside" not in "".join(drawings)


@pytest.mark.parametrize("form", sorted(set(FACES) - {"html"}))
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_face_carries_what_a_terminal_acts_on(form: str, text: str) -> None:
    shown = face_of(poisoned(text), form)

    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\ud800]", shown)
    if form == "text":
        assert "\r" not in shown
        assert len(shown.splitlines()) == len(face_of(poisoned("x"), form).splitlines())


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_cell_of_a_table_calculates(text: str) -> None:
    rows = list(csv.reader(io.StringIO(face_of(poisoned(text), "csv"), newline="")))

    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 4
    for cell in (cell for row in rows[1:] for cell in row):
        assert not cell.lstrip().startswith(("=", "+", "@", "|", "%", "\uff1d"))
        assert not cell.startswith("-") or re.fullmatch(r"-\d+(\.\d+)?", cell)


def test_json_gives_every_text_back_as_it_was() -> None:
    for text in HOSTILE:
        document = poisoned(text)
        assert ReportDocument.from_json(face_of(document, "json")) == document


def test_ordinary_letters_of_all_languages_stay_as_they_are() -> None:
    for text in ("Größe", "订单", "заказы", "a b-c_d.e", "emoji \N{WHITE HEAVY CHECK MARK}"):
        assert visible(text) == text
