"""Every error crosses process borders whole, says what happened, and what to do next."""

from __future__ import annotations

import ast
import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest

from tallystick import errors
from tallystick.errors import IngestionError, LedgerBehind
from tests.support.repository import ROOT, tracked_modules

EXAMPLES: dict[object, object] = {int: 7, float: 1.5, object: ["a", "value"]}
SEQUENCE = ("the first", "the second")
# The first is always the feed's name, which is told; the second names every place it looked at.
UNSAID = {errors.FeedUnknown: {"<setting>"}, errors.ConnectionMissing: {"<where>"}}


def _hierarchy(kind: type[IngestionError] = IngestionError) -> Iterator[type[IngestionError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _hierarchy(each)


KINDS = sorted(
    {kind for kind in _hierarchy() if kind.__module__.startswith(f"{errors.__name__}.")}, key=str
)


def _example(kind: type[IngestionError]) -> IngestionError:
    """An instance with every argument given, by the types of its signature; no two texts alike."""
    hints = get_type_hints(kind.__init__)
    given = {
        name: f"<{name}>" if hints[name] is str else EXAMPLES.get(hints[name], SEQUENCE)
        for name in inspect.signature(kind.__init__).parameters
        if name != "self"
    }
    return kind(**given)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling(kind: type[IngestionError]) -> None:
    error = _example(kind)
    again = pickle.loads(pickle.dumps(error))

    assert type(again) is kind
    assert again.args == error.args
    assert str(again) == str(error)
    assert again.__dict__ == error.__dict__


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_what_to_do_next(kind: type[IngestionError]) -> None:
    error = _example(kind)

    assert len(kind.next_step) > 10
    assert str(error).endswith(kind.next_step)
    assert len(error.describe()) > 5


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_where_the_story_was(kind: type[IngestionError]) -> None:
    error = _example(kind)
    error.place = ("feed orders", "at verify", "batch b1")
    again = pickle.loads(pickle.dumps(error))

    assert str(error).startswith("feed orders, at verify, batch b1: ")
    assert str(again) == str(error)
    assert str(error).endswith(f"{error.sentence()} {kind.next_step}") or "\n" in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_names_every_text_it_was_given(kind: type[IngestionError]) -> None:
    error = _example(kind)
    unsaid = {each for each in error.args if isinstance(each, str) and each not in str(error)}

    assert unsaid == UNSAID.get(kind, set())


def test_a_bare_error_speaks_with_its_docstring() -> None:
    assert str(errors.StorageError()) == (
        "HDFS did not do what was asked. Read the log above this line."
    )


def _bases_of(path: Path) -> Iterator[tuple[str, set[str]]]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ClassDef):
            yield node.name, {ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases}


def test_errors_are_defined_in_one_place() -> None:
    names = {kind.__name__ for kind in KINDS}
    elsewhere = [
        (str(path), name)
        for path in tracked_modules()
        if path.parts[:2] == ("plugins", "tallystick") and path.parts[2] != "errors"
        for name, bases in _bases_of(path)
        if bases & names
    ]

    assert not elsewhere


@pytest.mark.parametrize(
    ("directories", "said"),
    [
        (["/a/batch=1"], "HDFS holds 1 batch that the ledger does not know: /a/batch=1."),
        (
            ["/a/batch=1", "/a/batch=2"],
            "HDFS holds 2 batches that the ledger does not know, first /a/batch=1.",
        ),
    ],
)
def test_a_ledger_that_is_behind_says_how_many_batches_it_lacks(
    directories: list[str], said: str
) -> None:
    assert LedgerBehind("orders", directories).sentence() == f"feed orders: {said}"
