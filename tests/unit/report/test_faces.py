"""What the faces say of a report and how they call the command; the page needs nobody else."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from html import unescape

import pytest
from typer.main import get_group

from tallystick.cli.app import app
from tallystick.domain.report.document import FORMAT, ComparedPart, ReportDocument
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.report import safe_text
from tallystick.report.faces import face_of
from tallystick.report.safe_text import visible, visible_lines
from tests.support.report_documents import a_document, a_finding, a_partition

YEAR_OF_HOURS = 8_760
MOST_BYTES = 1_000_000


def test_a_document_comes_back_from_its_json() -> None:
    document = a_document()

    assert ReportDocument.from_json(document.to_json()) == document
    assert json.loads(document.to_json())["format"] == FORMAT


@pytest.mark.parametrize(
    "text", ["[]", "{}", "null", "7", '{"format": "tallystick-report-2"}', "no json"]
)
def test_anything_else_is_no_document(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ReportDocument.from_json(text)


def test_partitions_are_shown_worst_first_then_by_lag() -> None:
    shown = a_document().worst_first

    assert [each.verdict for each in shown[:4]] == [
        "PROVEN_LOSS", "PROVEN_LOSS", "UNKNOWN", "PROVEN_OK"
    ]  # fmt: skip
    lags = [each.lag or 0 for each in shown[3:]]
    assert lags == sorted(lags, reverse=True)


def test_text_says_the_verdict_what_is_proven_and_each_next_step() -> None:
    lines = face_of(a_document(), "text").splitlines()

    assert lines[:2] == [
        "Feed orders, topic orders: PROVEN_LOSS (levels L0, L1, L2; 2026-11-08 12:30:00Z).",
        "Complete up to: 2026-11-07 16:30:00Z, every window to 2026-11-07 16:00:00Z",
    ]
    assert sum(line.startswith("  next: ") for line in lines) == 2
    assert "12 partitions: 2 PROVEN_LOSS, 1 UNKNOWN, 9 PROVEN_OK" in lines
    read = "Read in full (L3): 82 of 84 batches"
    assert f"{read}; 2 not yet, so no fingerprint of them is on record." in lines


def test_text_says_that_every_batch_was_read_in_full_and_nothing_before_the_first_one() -> None:
    document = a_document()
    read = [each for each in document.ages if each.from_seconds is not None]
    said = face_of(replace(document, ages=tuple(read)), "text")
    assert "Read in full (L3): 82 of 82 batches.\n" in said
    assert "Read in full" not in face_of(replace(document, ages=()), "text")


def test_text_counts_offsets_without_a_record_by_their_cause() -> None:
    first, *_ = a_document().partitions
    holes = replace(first, holes={"control": 2, "aborted": 0, "compacted": 1_500})
    said = face_of(replace(a_document(), partitions=(holes, holes)), "text")
    assert "\nOffsets without a record, as is normal: 4 control, 3 000 compacted.\n" in said
    assert "without a record" not in face_of(replace(a_document(), partitions=()), "text")


def test_what_two_people_have_accepted_has_no_next_step() -> None:
    waived = replace(
        a_finding(1), state=FindingState.WAIVED, next_step="Look at the log's retention."
    )
    document = a_document(findings=[waived])

    text, html = face_of(document, "text"), face_of(document, "html")

    assert "WAIVED" in text
    for face in (text, html):
        assert waived.next_step not in unescape(face)
    assert '<p class="next"></p>' in html


def test_a_silent_witness_is_told_and_is_not_in_order() -> None:
    document = replace(
        a_document(), unheard=("HDFS could not be asked: it is down.",), complete_up_to=None
    )

    text, html = face_of(document, "text"), face_of(document, "html")

    assert "Complete up to: no time is proven" in text
    for face in (text, html):
        assert "Not heard: HDFS could not be asked: it is down." in face
        assert "is UNKNOWN, not in order." in face


def test_text_stays_short_and_counts_what_it_leaves_out() -> None:
    document = a_document(partitions=500, findings=[a_finding(each) for each in range(300)])

    lines = face_of(document, "text").splitlines()

    assert len(lines) < 150
    assert "... and 250 more, in the report's other forms." in lines
    assert "... and 480 more." in lines


def test_a_page_asks_nobody_for_anything() -> None:
    html = face_of(a_document(), "html")
    head = html.split("<style>")[0]
    own = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)

    assert "default-src 'none'" in unescape(head)
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?(https?:)?//""", own)
    assert not re.search(r"<(link|iframe|object|embed|base|form)\b", own)


def test_a_page_names_the_hash_of_each_of_its_scripts() -> None:
    html = face_of(a_document(), "html")
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)

    hashes = [base64.b64encode(sha256(each.encode()).digest()).decode() for each in scripts]

    assert re.findall(r"'sha256-([^']+)'", unescape(html.split("<style>")[0])) == hashes
    assert not any("\r" in each for each in scripts)


def test_every_finding_is_on_the_page_with_its_evidence_and_next_step() -> None:
    html = face_of(a_document(), "html")

    cards = html.split("<template")[0].count("<article class=")
    assert cards == 2
    assert html.count("retention_ms") == 2
    assert html.count("tallystick explain 17") == 2


def test_what_nobody_has_proven_is_grey() -> None:
    html = face_of(a_document(), "html")

    verdicts = html.split('data-verdicts="')[1].split('"')[0].split("|")
    rows = html.split('data-cells="')[1].split('"')[0].split("|")

    assert verdicts == [each.value for each in Verdict]
    unknown = verdicts.index("UNKNOWN")
    assert {row.rpartition(",")[2].partition(":")[0] for row in rows} == {str(unknown)}


def test_an_empty_report_has_all_four_faces() -> None:
    document = replace(
        a_document(partitions=1, columns=1, findings=()),
        partitions=(), columns=(), band=(), ages=(), verdict=Verdict.UNKNOWN,
    )  # fmt: skip
    document = replace(document, coverage=replace(document.coverage, edges=(), blocks=()))

    assert "Nothing found." in face_of(document, "text")
    assert "Nothing found." in face_of(document, "html")
    assert face_of(document, "csv").count("\n") == 1


def test_a_year_of_hours_over_ten_thousand_partitions_stays_small() -> None:
    width = timedelta(hours=YEAR_OF_HOURS // 120)
    findings = [a_finding(each, cause=f"these are gone: {each}.") for each in range(10_000)]
    document = a_document(partitions=10_000, columns=120, width=width, findings=findings)

    assert len(document.coverage.blocks) <= 128
    assert len(face_of(document, "html").encode()) < MOST_BYTES


@pytest.mark.parametrize(
    ("part", "row"),
    [
        (a_partition(0, seconds_to_loss=None), "-"),
        (a_partition(0, seconds_to_loss=-5.0), "overdue"),
        (a_partition(0, seconds_to_loss=3_900.0), "1 h 5 min"),
    ],
)
def test_the_time_to_loss_is_told_in_words(part: object, row: str) -> None:
    html = face_of(replace(a_document(), partitions=(part,)), "html")  # type: ignore[arg-type]

    assert f"<td>{row}</td>" in html


def test_what_a_second_reader_compared_and_what_it_could_not_is_told() -> None:
    compared = ComparedPart(3, 4_500, 2, ("batch b: it is away.",))
    document = replace(a_document(columns=6), second_reader=compared)
    said = (
        "Compared with the broker by a second reader (L4): 4 500 offsets of 3 batches; 2 wait for"
        " their turn."
    )
    for form in ("text", "html"):
        face = face_of(document, form).replace("\u202f", " ").replace("\xa0", " ")
        assert said in face
        assert "not compared: batch b: it is away." in face
    assert ReportDocument.from_json(document.to_json()) == document
    assert "second reader" not in face_of(a_document(columns=6), "text")


NEXT = "Mend it: tallystick ledger rebuild orders --json\nor tallystick kafka-secrets orders"


def test_each_command_of_the_command_line_is_known() -> None:
    assert {*get_group(app).commands} == {*safe_text.COMMANDS}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "called", ["./tallystick", "python -m tallystick", "docker compose exec a tallystick", "tl"]
)
def test_faces_call_the_command_as_it_is_called_here(
    called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_PROGRAM", called)

    assert visible_lines(visible_lines(NEXT)) == NEXT.replace("tallystick ", f"{called} ")


@pytest.mark.parametrize(
    "text", ["role tallystick may not", "/srv/tallystick plan", "my-tallystick land", "tallystick"]
)
def test_what_is_no_command_is_left(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_PROGRAM", "./tallystick")

    assert visible(text) == text


def test_a_checkout_without_the_setting_is_called_as_a_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TALLYSTICK_PROGRAM")

    assert visible("tallystick feed check") == "python -m tallystick feed check"
