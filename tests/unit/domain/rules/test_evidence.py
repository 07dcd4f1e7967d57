"""Evidence that the program reads back: it reads what it wrote, and from its own rule only."""

from __future__ import annotations

from typing import Protocol, Self

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules import evidence
from tallystick.domain.rules.a3_log_cut import CutEvidence
from tallystick.domain.rules.a8_committed_file_missing import LostRows
from tallystick.domain.rules.b2_landed_twice import SharedWith
from tallystick.domain.rules.findings import Finding
from tests.support.builders import BATCH, a_finding


class Typed(Protocol):
    def as_json(self) -> dict[str, object]: ...

    @classmethod
    def of(cls, found: Finding) -> Self | None: ...


def with_evidence(code: str, level: Level, told: dict[str, object]) -> Finding:
    return a_finding(code, level, evidence=told)


WRITTEN: list[tuple[str, Level, Typed]] = [
    ("A3", Level.L1, CutEvidence("then", 5)),
    ("A3", Level.L1, CutEvidence("then", 5, 4, ("/kept/a", "/kept/b"))),
    ("A8", Level.L1, LostRows(BATCH)),
    ("A8", Level.L1, LostRows(BATCH, ("/kept/a",))),
    ("B2", Level.L2, SharedWith("/d/a.parquet")),
    ("B2", Level.L2, SharedWith("/d", BatchId("0" * 16))),
]


@pytest.mark.parametrize(("code", "level", "written"), WRITTEN)
def test_evidence_is_read_as_it_was_written(code: str, level: Level, written: Typed) -> None:
    assert type(written).of(with_evidence(code, level, written.as_json())) == written


@pytest.mark.parametrize(("code", "level", "written"), WRITTEN)
def test_evidence_is_read_from_its_own_rule_only(code: str, level: Level, written: Typed) -> None:
    assert type(written).of(with_evidence("C1", Level.L2, written.as_json())) is None


@pytest.mark.parametrize(
    ("code", "level", "kind"),
    [("A3", Level.L1, CutEvidence), ("A8", Level.L2, LostRows), ("B2", Level.L2, SharedWith)],
)
def test_a_finding_of_the_rule_may_carry_none_of_it(
    code: str, level: Level, kind: type[Typed]
) -> None:
    assert kind.of(with_evidence(code, level, {})) is None


def test_what_several_rules_carry_is_read_as_it_was_written() -> None:
    assert evidence.batch_in(evidence.of_batch(BATCH)) == BATCH
    assert evidence.file_in(evidence.of_file(BATCH, "a")) == CommittedFile(BATCH, "a")
    assert evidence.file_in(evidence.of_file(BATCH, None)) is None
    assert evidence.kept_in(evidence.of_kept(["/a", "/b"])) == ("/a", "/b")
    assert (evidence.of_kept([]), evidence.kept_in({})) == ({}, ())
    assert evidence.topic_id_in(evidence.of_topic("t")) == "t"
    assert (evidence.batch_in({}), evidence.topic_id_in({}), evidence.path_in({})) == (None,) * 3


def test_two_ways_not_to_have_been_asked_are_told_apart() -> None:
    of_path = evidence.of_path_not_asked("/d")
    of_attempts = evidence.of_held({"/s/b/1": "no answer."})
    assert evidence.path_not_asked(of_path) == "/d"
    assert evidence.held_in(of_attempts) == {"/s/b/1": "no answer."}
    assert evidence.path_not_asked(of_attempts) is None
    assert evidence.held_in(of_path) is None
