"""The documents say what the code says: errors, findings, states, links, decisions, a statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

import pytest

from tallystick import errors
from tallystick.domain.batches.states import TRANSITIONS, BatchState, HoleClass, RangeState
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import IngestionError
from tests.support.repository import (
    DOCS,
    ROOT,
    commands_in,
    sections_of,
    tracked_files,
    tracked_modules,
)
from tests.support.rule_tables import REPORTS, with_tables

RUNBOOK = DOCS / "runbook.md"

DECISIONS = sorted((DOCS / "adr").glob("*.md"))


def _names(kind: type[IngestionError] = IngestionError) -> Iterator[str]:
    if kind.__module__.startswith(f"{errors.__name__}."):
        yield kind.__name__
    for each in kind.__subclasses__():
        yield from _names(each)


def _headings_below(part: str) -> list[str]:
    text = sections_of(RUNBOOK, level=2)[part]
    return re.findall(r"^### (.+)$", text, re.MULTILINE)


def test_every_error_has_a_heading_and_no_heading_is_left_over() -> None:
    assert sorted(_headings_below("Errors")) == sorted(_names())


def test_the_tables_of_rules_are_what_the_code_says() -> None:
    assert with_tables(REPORTS.read_text()) == REPORTS.read_text()


def test_every_finding_has_a_heading_and_no_heading_is_left_over() -> None:
    names = [f"{code.value} {code.name.lower().replace('_', ' ')}" for code in FindingCode]

    assert _headings_below("Findings") == names


@pytest.mark.parametrize("heading", sections_of(RUNBOOK, level=3))
def test_every_heading_has_its_meaning_perhaps_its_evidence_and_an_action(heading: str) -> None:
    text = sections_of(RUNBOOK, level=3)[heading]
    parts = re.findall(r"^\*\*(Meaning|Evidence|Action)\.\*\* \S", text, re.MULTILINE)

    assert parts in (["Meaning", "Action"], ["Meaning", "Evidence", "Action"])


def test_an_error_that_is_tried_again_says_so() -> None:
    sections = sections_of(RUNBOOK, level=3)
    retried = {name for name in _names() if getattr(errors, name).retry and name != "BatchBusy"}

    assert {name for name in _names() if "Tried again" in sections[name]} == retried


def test_the_table_of_states_is_the_codes() -> None:
    table = sections_of(DOCS / "design.md", level=2)["States of a batch"]
    rows = re.findall(r"^\| (\w+) \| (\w+) \| .+ \|$", table, re.MULTILINE)[1:]

    assert len(rows) == len(TRANSITIONS)
    assert {(BatchState(before), BatchState(after)) for before, after in rows} == TRANSITIONS


@pytest.mark.parametrize("kind", [HoleClass, RangeState, Verdict])
def test_every_word_of_the_ledger_is_in_the_glossary(kind: type[StrEnum]) -> None:
    glossary = (DOCS / "glossary.md").read_text()

    assert not [each.value for each in kind if not re.search(rf"\b{each.value}\b", glossary)]


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]

    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.name)
def test_a_decision_has_its_parts(path: Path) -> None:
    text = path.read_text()
    title = re.match(r"# (\d+)\. (.+)\n", text)

    assert title
    assert int(title[1]) == int(path.name[:4])
    assert re.search(r"^Status: (accepted|superseded by \d+)$", text, re.MULTILINE)
    assert list(sections_of(path, level=2)) == ["Context", "Decision", "Consequences"]


@pytest.mark.parametrize(
    "path", [path for path in tracked_files() if path.suffix == ".md"], ids=str
)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / path).read_text())
    local = [link for link in links if not link.startswith("http")]

    assert not [link for link in local if not (ROOT / path.parent / link).exists()]


@pytest.mark.parametrize(
    "path", [path for path in tracked_files() if path.suffix == ".md"], ids=str
)
def test_files_that_a_text_names_are_there(path: Path) -> None:
    named = re.findall(r"`((?:tests|docs|bench|plugins|sandbox)/[\w./-]+\.\w+)`", _text(path))

    assert not [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize(
    "path", [path for path in tracked_files() if path.suffix == ".md"], ids=str
)
def test_thousands_are_parted_by_blanks(path: Path) -> None:
    assert not re.findall(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?!\d)", (ROOT / path).read_text())


def test_nothing_is_counted_in_one_and_in_many() -> None:
    texts = {each: (ROOT / each).read_text() for each in tracked_modules()}
    assert not [each for each in texts if re.search(r"[a-z]\(e?s\)[ .,;\"]", texts[each])]


def test_tests_that_a_module_names_are_there() -> None:
    named = {
        (str(path), name)
        for path in tracked_modules()
        for name in re.findall(r"tests/[\w/-]+\.py\b", _text(path))
    }

    assert named
    assert not [pair for pair in named if not (ROOT / pair[1]).exists()]


def _text(path: Path) -> str:
    return (ROOT / path).read_text()


def test_every_backfill_that_is_documented_is_one_that_a_test_runs() -> None:
    texts = [file.read_text() for file in (*DOCS.glob("*.md"), ROOT / "README.md")]
    run = [each for file in DOCS.glob("*.md") for each in commands_in(file, "./tallystick airflow")]

    assert sum(text.count("airflow backfill") for text in texts) == 2
    assert sum(" airflow backfill " in each for each in run) == 2
