"""Every command, option, exit code, JSON field and feed key is in the docs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter
from typer.main import get_command

from tallystick import cli
from tallystick.cli import answers
from tallystick.cli.app import app
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.finding_part import FindingPart, WaiverPart
from tallystick.report import batch_parts, documents, whereabouts
from tallystick.report.documents import Document, Part
from tallystick.settings.connections import _FALLBACKS
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup

DOCS = Path(__file__).resolve().parents[3] / "docs"
CLI = (DOCS / "cli.md").read_text()
FEEDS = (DOCS / "feeds.md").read_text()


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every command with its options."""
    pending = [("", get_command(app))]
    while pending:
        name, command = pending.pop()
        inner = getattr(command, "commands", None)
        if inner:
            pending += [(f"{name} {key}".strip(), each) for key, each in inner.items()]
        else:
            yield name, [option for each in command.params for option in each.opts]


def test_the_commands_are_those_that_were_promised() -> None:
    assert {name for name, _ in commands()} == {
        "feed list", "feed check", "feed show", "feed retire", "doctor", "plan", "land", "batches",
        "files",
        "reconcile", "report", "complete", "findings", "explain", "repair", "waive", "unwaive",
        "kafka-secrets", "jars", "ledger migrate", "ledger status", "ledger rebuild",
        "ledger export",
    }  # fmt: skip


def test_every_command_and_option_is_documented() -> None:
    for name, options in commands():
        assert re.search(rf"^\| `{name}[ `]", CLI, re.MULTILINE), name
        for option in options:
            assert not option.startswith("-") or f"`{option}" in CLI, option


def test_every_exit_code_is_documented() -> None:
    codes = (answers.CLEAN, answers.FINDINGS, answers.WRONG_USE, answers.COULD_NOT)
    for code in (*codes, answers.INTERRUPTED):
        assert f"\n| {code} | " in CLI


MODULES = [import_module(f"{cli.__name__}.{each.name}") for each in iter_modules(cli.__path__)]
PARTS = [
    each
    for module in (*MODULES, batch_parts, documents, whereabouts)
    for _, each in inspect.getmembers(module, inspect.isclass)
    if issubclass(each, Part) and each.__module__ == module.__name__ and is_dataclass(each)
]
DOCUMENTS = [each for each in PARTS if issubclass(each, Document) and each is not Document]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_field_is_documented(part: Any) -> None:
    described = set(re.findall(r"`([^`]+)`", CLI))
    for each in fields(part):
        assert each.name in described or f"`{each.default}`" in CLI, each.name


@pytest.mark.parametrize("part", [FindingPart, WaiverPart])
def test_every_field_of_a_finding_is_documented_once(part: type) -> None:
    start = {FindingPart: "\nA finding:\n", WaiverPart: "\n| field of a waiver |"}[part]
    table = CLI[CLI.index(start) :].lstrip().split("\n\n")[part is FindingPart]
    cells = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    assert re.findall(r"`([a-z_]+)`", " ".join(cells)) == [each.name for each in fields(part)]


@pytest.mark.parametrize("document", [*DOCUMENTS, ReportDocument], ids=lambda kind: kind.__name__)
def test_every_document_shows_findings_in_one_shape(document: type) -> None:
    schema = TypeAdapter(document).json_schema()
    objects = {document.__name__: schema, **schema.get("$defs", {})}
    for name, properties in ((name, each.get("properties", {})) for name, each in objects.items()):
        # What has a code and a verdict says what a finding says.
        assert not {"code", "verdict"} <= properties.keys() or name == "FindingPart", name
        for key, kind in properties.items():
            if key in ("finding", "findings"):
                assert list(referred(kind)) == ["#/$defs/FindingPart"], (name, key)
            if key in ("finding_id", "finding_ids"):
                assert kind.get("items", kind)["type"] == "integer", (name, key)


def test_the_documents_that_tell_of_findings_are_these() -> None:
    telling = {
        each.__name__
        for each in (*DOCUMENTS, ReportDocument)
        if "FindingPart" in TypeAdapter(each).json_schema().get("$defs", {})
    }
    assert telling == {
        "PlanDocument", "LandDocument", "ReportDocument", "CompleteDocument",
        "FindingsDocument", "ExplainDocument", "LedgerRebuildDocument",
    }  # fmt: skip


def referred(kind: Any) -> Iterator[str]:
    """Every definition that the schema of a property refers to."""
    if isinstance(kind, dict):
        yield from ([kind["$ref"]] if "$ref" in kind else [])
        kind = list(kind.values())
    if isinstance(kind, list):
        for each in kind:
            yield from referred(each)


def feed_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        key = f"{prefix}{info.alias or name}"
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from feed_keys(kind, f"{key}.")
        else:
            yield key


def test_the_feed_keys_are_documented_and_no_others() -> None:
    told = re.findall(r"^\| `([a-z_.]+)` \|", FEEDS, re.MULTILINE)
    of_group = ("source.topics", "dag")
    assert [each for each in told if each not in of_group] == list(feed_keys(Feed))
    assert [each for each in told if each != "source.topic"] == list(feed_keys(FeedGroup))


def test_every_variable_is_documented() -> None:
    for names, _ in _FALLBACKS.values():
        for name in names:
            assert f"`{name}`" in CLI
    assert "`TALLYSTICK_FEEDS`" in CLI
