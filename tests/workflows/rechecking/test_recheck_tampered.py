"""recheck.py on an export that somebody has changed: whatever it is, it shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tallystick.workflows.landing.run import land_feed
from tests.support.landed_feed import OWNER
from tests.support.rechecked import Lines, Sceptic, rows_of, sceptic_of
from tests.support.scripted_broker import Kind
from tests.support.story import a_landed_story

UNKNOWN, LOSS = "UNKNOWN", "PROVEN_LOSS"


@pytest.fixture
def sceptic(
    ledger_databases: Callable[[], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Sceptic:
    """Two partitions in three batches."""
    story = a_landed_story(ledger_databases(), tmp_path / "files", 10, 5, 5)
    return sceptic_of(story, tmp_path, capsys)


def without(lines: Lines, *gone: dict[str, Any]) -> Lines:
    """The export without some rows, and with a last line that fits."""
    left = [each for each in lines if each not in gone]
    left[-1] = left[-1] | {"rows": len(left) - 2}
    return left


def a_changed_row(lines: Lines, table: str, **values: Any) -> Lines:
    row = rows_of(lines, table)[1]
    return [each | values if each is row else each for each in lines]


def a_changed_manifest(lines: Lines) -> Lines:
    row = rows_of(lines, "verification")[1]
    text = row["manifest"].replace('"records":5', '"records":4')
    assert text != row["manifest"]
    digest = "\\x" + hashlib.sha256(text.encode()).hexdigest()
    return a_changed_row(lines, "verification", manifest=text, sha256=digest)


def a_batch_of_another(lines: Lines) -> Lines:
    other = rows_of(lines, "verification")[0]["verification_id"]
    return a_changed_row(lines, "batch", verification_id=other)


def a_commit_that_never_was(lines: Lines) -> Lines:
    """The second batch, with all that the ledger says of it."""
    batch = rows_of(lines, "batch")[1]["batch_id"]
    gone = [each for each in lines if batch in (each.get("batch_id"), each.get("old_batch_id"))]
    return without(lines, *gone)


def a_range_less(lines: Lines) -> Lines:
    return without(lines, rows_of(lines, "offset_range")[0])


def a_range_moved(lines: Lines) -> Lines:
    row = rows_of(lines, "offset_range")[0]
    return [each | {"offsets": "[5,10)"} if each is row else each for each in lines]


TAMPERED: dict[str, Callable[[Lines], Lines]] = {
    "a manifest": a_changed_manifest,
    "a batch's proof": a_batch_of_another,
    "a digest": lambda lines: a_changed_row(lines, "commit_link", digest="\\x" + "0" * 64),
    "a commit removed": a_commit_that_never_was,
    "a link removed": lambda lines: without(lines, rows_of(lines, "commit_link")[1]),
    "the last link removed": lambda lines: without(lines, rows_of(lines, "commit_link")[-1]),
    "a range removed": a_range_less,
    "a range cut": a_range_moved,
    "a batch that was not committed": lambda lines: a_changed_row(
        lines, "batch", committed_by=None, state="landing"
    ),
}


@pytest.mark.parametrize("tampered", TAMPERED.values(), ids=list(TAMPERED))
def test_a_tampered_export_proves_nothing(
    sceptic: Sceptic, tampered: Callable[[Lines], Lines]
) -> None:
    found = sceptic.recheck(tampered(sceptic.reported()))

    assert found.exit_code == 1, found.said
    assert {own for own, _ in found.verdicts.values()} & {UNKNOWN, LOSS}, found.said
    assert "chain UNKNOWN" in found.said


def test_a_loss_that_was_taken_out_shows(sceptic: Sceptic) -> None:
    log = sceptic.story.broker.logs[0]
    log.append(Kind.RECORD, 20)
    log.log_start_offset = len(log.entries) - 5
    land_feed(sceptic.story.services(), None, OWNER)
    lines = sceptic.reported()
    [lost] = [each for each in rows_of(lines, "offset_range") if each["state"] == "lost"]

    found = sceptic.recheck(without(lines, lost))

    assert found.exit_code == 1
    assert "chain UNKNOWN [20, 35): ledger and chain do not agree on it" in found.said


def test_an_export_that_is_cut_is_not_judged(sceptic: Sceptic) -> None:
    lines = sceptic.reported()

    assert sceptic.recheck(lines[:-1]).exit_code == 3
    assert sceptic.recheck([*lines[:5], *lines[6:]]).exit_code == 3


def test_a_chain_that_was_made_anew_lacks_the_digest_that_was_kept(sceptic: Sceptic) -> None:
    """Who changes a manifest and then every link behind it has another last digest."""
    lines = sceptic.reported()
    kept = sceptic.recheck(lines).head
    assert sceptic.recheck(lines, f"head={kept}").exit_code == 0
    forged = chained_anew(a_changed_manifest(lines))

    found = sceptic.recheck(forged, f"head={kept}")

    assert found.exit_code == 1
    assert "the chain does not have the digest that was kept" in found.said


def chained_anew(lines: Lines) -> Lines:
    texts = {each["verification_id"]: each["manifest"] for each in rows_of(lines, "verification")}
    proofs = {each["batch_id"]: each["verification_id"] for each in rows_of(lines, "batch")}
    digest = hashlib.sha256(b"orders").digest()
    for link in rows_of(lines, "commit_link"):
        proof = hashlib.sha256(texts[proofs[link["batch_id"]]].encode()).digest()
        previous, digest = digest, hashlib.sha256(digest + proof).digest()
        told = zip(
            ("previous", "manifest_sha256", "digest"), (previous, proof, digest), strict=True
        )
        link |= {key: f"\\x{each.hex()}" for key, each in told}
    return json.loads(json.dumps(lines))  # type: ignore[no-any-return]
