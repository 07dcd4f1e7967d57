"""A10, ledger behind: batches in storage that the ledger does not know."""

from __future__ import annotations

import pytest

from tallystick.domain.batches.stored_file import UnknownFile
from tallystick.domain.rules.a10_ledger_behind import ledger_behind
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.waivers import evidence_digest
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, TOPIC


def test_a_commit_that_the_ledger_does_not_know_stops_landing() -> None:
    (found,) = ledger_behind(FEED, TOPIC, {"/landing/orders/gen=1/batch=1": ()}, {})

    assert (found.code, found.verdict) == (FindingCode.LEDGER_BEHIND, Verdict.UNKNOWN)
    assert found.next_step.startswith("Nothing is landed until this is mended")


def test_a_directory_without_a_manifest_stops_landing_and_says_the_way_in() -> None:
    one, other = ledger_behind(FEED, TOPIC, {"/landing/one": ()}, {"/landing/other": ()})

    assert (one.subject, other.subject) == ("/landing/one", "/landing/other")
    assert one.key != other.key
    assert (one.name, one.subject) == ("unknown batch", "/landing/one")
    assert (other.name, other.subject) == ("no manifest", "/landing/other")
    assert "--without-manifest" in other.next_step


@pytest.mark.parametrize(
    "files",
    [
        [],
        [UnknownFile("one", 5, 1), UnknownFile("two", 5, 1)],
        [UnknownFile("one", 6, 1)],
        [UnknownFile("one", 5, 2)],
        [UnknownFile("two", 5, 1)],
    ],
)
def test_a_directory_that_the_ledger_does_not_know_is_told_with_its_files(
    files: list[UnknownFile],
) -> None:
    was, now = {"/d": [UnknownFile("one", 5, 1)]}, {"/d": files}
    for old, new in zip(
        ledger_behind(FEED, TOPIC, was, was), ledger_behind(FEED, TOPIC, now, now), strict=True
    ):
        assert old.key == new.key
        assert evidence_digest(old.evidence) != evidence_digest(new.evidence)
