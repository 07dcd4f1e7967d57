"""Every command, option, exit code, JSON field and feed key is in the docs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.main import get_command

from tallystick.cli import answers, documents, finding_documents
from tallystick.cli.app import app
from tallystick.settings.connections import _FALLBACKS
from tallystick.settings.feed import Feed

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
        "feed list", "feed check", "feed show", "plan", "land", "batches", "files", "reconcile",
        "report", "complete", "findings", "explain", "repair", "waive", "kafka-secrets",
        "ledger migrate", "ledger status", "ledger rebuild", "ledger export",
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


MODELS = [
    each
    for module in (documents, finding_documents)
    for _, each in inspect.getmembers(module, inspect.isclass)
    if issubclass(each, BaseModel) and each.__module__ == module.__name__
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_field_is_documented(model: type[BaseModel]) -> None:
    described = set(re.findall(r"`([^`]+)`", CLI))
    for name, info in model.model_fields.items():
        if name == "format":
            assert f"`{info.default}`" in CLI
        assert name in described or name == "format", name
    for computed in model.model_computed_fields.values():
        assert computed.alias in described


def feed_keys(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, info in model.model_fields.items():
        key = f"{prefix}{info.alias or name}"
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from feed_keys(kind, f"{key}.")
        else:
            yield key


def test_the_feed_keys_are_documented_and_no_others() -> None:
    assert re.findall(r"^\| `([a-z_.]+)` \|", FEEDS, re.MULTILINE) == list(feed_keys(Feed))


def test_every_variable_is_documented() -> None:
    for names, _ in _FALLBACKS.values():
        for name in names:
            assert f"`{name}`" in CLI
    assert "`TALLYSTICK_FEEDS`" in CLI
