"""One rule, one place: only the modules of a rule make its findings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tallystick.domain.finding_codes import FindingCode
from tests.support.repository import ROOT, tracked_modules

CODES = {code.value for code in FindingCode}
RULES = Path("plugins/tallystick/domain/rules")
BUILDERS = {"Finding", "finding"}


@cache
def _modules() -> dict[Path, ast.Module]:
    paths = [path for path in tracked_modules() if path.parts[0] == "plugins"]
    return {path: ast.parse((ROOT / path).read_text()) for path in paths}


def _named(module: ast.Module) -> Iterator[str]:
    """The rules that a module names, but for those with which it compares a finding's rule."""
    compared = {
        id(each)
        for node in ast.walk(module)
        if isinstance(node, ast.Compare)
        for each in ast.walk(node)
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id in CODES and id(node) not in compared:
            yield node.id


def test_only_the_modules_of_a_rule_make_its_findings() -> None:
    strangers = [
        (str(path), code)
        for path, module in _modules().items()
        if path != RULES / "registry.py"
        for code in _named(module)
        if path.parent != RULES or not path.name.startswith(f"{code.lower()}_")
    ]
    assert strangers == []


def test_nobody_makes_findings_but_the_rules_and_the_ledger_that_reads_them() -> None:
    makers = {
        path
        for path, module in _modules().items()
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in BUILDERS
        and path.parent != RULES
    }
    assert makers == {Path("plugins/tallystick/ledger/findings.py")}


def test_nobody_reads_evidence_by_its_keys_but_the_rules() -> None:
    """Others ask the types and the functions that have written it."""
    readers = [
        str(path)
        for path, module in _modules().items()
        if path.parent != RULES
        for node in ast.walk(module)
        if isinstance(node, ast.Subscript)
        or (isinstance(node, ast.Attribute) and node.attr == "get")
        if isinstance(node.value, ast.Attribute) and node.value.attr == "evidence"
    ]
    assert readers == []
