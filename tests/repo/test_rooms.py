"""Where the tests lie: a folder says what its tests need, and what they are about."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from sandbox.entry.dispatch import UNIT_TESTS
from tests.support.repository import ROOT, tracked_lines, tracked_modules

SERVICES = {"ledger_server", "sandbox"}
# Whose fixtures a unit test can request.
SHARED = ("tests/conftest.py", "tests/support/")


def _requests_below(*folders: str) -> list[tuple[Path, str, set[str]]]:
    """Where each test and fixture is, its name, and the fixtures that it requests."""
    return [
        (path, node.name, {each.arg for each in node.args.args})
        for path in tracked_modules()
        if str(path).startswith(folders)
        for node in ast.walk(ast.parse((ROOT / path).read_text()))
        if isinstance(node, ast.FunctionDef)
        and (node.name.startswith("test_") or "fixture" in map(_decorator, node.decorator_list))
    ]


def _decorator(mark: ast.expr) -> str:
    called = mark.func if isinstance(mark, ast.Call) else mark
    return called.attr if isinstance(called, ast.Attribute) else ""


def _on_a_service(requests: list[tuple[Path, str, set[str]]]) -> set[str]:
    """The services and every fixture that rests on one, however far below."""
    found = set(SERVICES)
    while more := {name for _, name, requested in requests if requested & found} - found:
        found |= more
    return found


def test_no_unit_test_requests_a_service() -> None:
    units = _requests_below(*UNIT_TESTS)
    services = _on_a_service([*_requests_below(*SHARED), *units])

    assert all((ROOT / folder).is_dir() for folder in UNIT_TESTS)
    assert {"ledger_dsn", "ledger_databases", "kafka", "hdfs", "spark_connect"} <= services
    assert not [
        f"{path}: {name} requests {requested & services}"
        for path, name, requested in units
        if requested & services
    ]


def test_unit_tests_say_in_their_arguments_what_they_request() -> None:
    hidden = ["getfixture" + "value", "use" + "fixtures"]

    assert not [
        place
        for place, line in tracked_lines()
        if place.startswith(UNIT_TESTS) and any(word in line for word in hidden)
    ]


@pytest.mark.parametrize(
    ("tests", "package"),
    [("tests/workflows", "workflows"), ("tests/unit/domain", "domain")],
)
def test_tests_lie_in_rooms_that_bear_the_names_of_the_package(tests: str, package: str) -> None:
    rooms = {path.name for path in (ROOT / "plugins/tallystick" / package).iterdir()}
    below = [path.relative_to(tests) for path in tracked_modules() if path.is_relative_to(tests)]
    # recheck.py is a workflow without the package.
    known = rooms | {"rechecking"}

    assert below
    assert not [path for path in below if path.name != "conftest.py" and not _has_room(path, known)]


def _has_room(path: Path, rooms: set[str]) -> bool:
    """A file at the top is about a module at the top."""
    return (path.parts[0] if len(path.parts) > 1 else path.name.removeprefix("test_")) in rooms
