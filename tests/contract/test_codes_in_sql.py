"""The schema can be given no parameters: the codes that it names are those of the rules.

A statement gets its codes from whoever asks it.
"""

from __future__ import annotations

import re
from importlib.resources import files

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.rules.registry import codes_with
from tallystick.domain.rules.rule import Trait
from tests.support.schema_dump import SCHEMA

CODES = set(FindingCode)


def codes_in(text: str) -> list[str]:
    """The finding codes that stand between quotes."""
    return [each for each in re.findall(r"'(\w+)'", text) if each in CODES]


def test_the_schema_knows_a_cut_log_and_a_rebuilt_one_by_the_codes_of_the_rules() -> None:
    schema = SCHEMA.read_text()
    lists = re.findall(r"code IN (\(.*?\))", schema)
    alone = re.findall(r"ending_code (?:=|IS DISTINCT FROM) ('\w+')", schema)

    assert [codes_in(each) for each in lists] == [codes_with(Trait.CUT)] * 2
    assert [codes_in(each) for each in alone] == [[FindingCode.LEDGER_BEHIND.value]] * 2
    assert len(codes_in(schema)) == sum(len(codes_in(each)) for each in [*lists, *alone])


def test_no_statement_names_a_code() -> None:
    directory = files("tallystick.ledger") / "sql"
    statements = {
        each.name: each.read_text() for each in directory.iterdir() if each.name.endswith(".sql")
    }

    assert "reading.sql" in statements
    assert {name: codes_in(text) for name, text in statements.items() if codes_in(text)} == {}
