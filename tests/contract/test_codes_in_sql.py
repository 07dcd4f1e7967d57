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
    ended = codes_in(" ".join(re.findall(r"ending_code (?:=|IS DISTINCT FROM) '\w+'", schema)))
    told = codes_in(" ".join(re.findall(r"f\.code = '\w+'", schema)))

    assert ended == [FindingCode.LEDGER_BEHIND, FindingCode.LEDGER_BEHIND, *codes_with(Trait.CUT)]
    assert told == codes_with(Trait.CUT)
    assert sorted(codes_in(schema)) == sorted([*ended, *told])


def test_no_statement_names_a_code() -> None:
    directory = files("tallystick.ledger") / "sql"
    statements = {
        each.name: each.read_text() for each in directory.iterdir() if each.name.endswith(".sql")
    }

    assert "reading.sql" in statements
    assert {name: codes_in(text) for name, text in statements.items() if codes_in(text)} == {}
