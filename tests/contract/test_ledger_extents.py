"""How much a finding is about: rows and their time, and until when Kafka has them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from tallystick.domain.report.extent import Extent, all_together
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.troubles import Trouble, troubles_of
from tallystick.domain.rules.evidence import of_batch, of_file
from tallystick.domain.verdicts import Verdict
from tallystick.report.wording import concern_text
from tests.contract.test_ledger_reports import a_report
from tests.support.builders import a_finding
from tests.support.ledger_story import FEED, HOUR, NOON, TOPIC, LedgerStory, snapshot_of
from tests.support.report_documents import a_finding as a_part

WEEK = timedelta(milliseconds=604_800_000)
FULL = {0: (0, 20), 1: (0, 20)}


def look(story: LedgerStory, bounds: Any = FULL, **changes: Any) -> datetime:
    """A look at the log; when it was."""
    shown = snapshot_of(bounds, **changes)
    with story.ledger.planning(FEED, TOPIC) as session:
        session.record_look(shown, ())
    newest = story.ledger.newest_bounds(FEED)
    assert newest
    return newest.looked_at


def landed(story: LedgerStory) -> tuple[str, str]:
    """A batch of an hour, of two partitions, with a file for each, planned after a look at nothing;
    its id and the name of its first file.
    """
    story.open({0: (0, 0), 1: (0, 0)})
    look(story, {0: (0, 0), 1: (0, 0)})
    batch = story.batch_of((0, 0, 10), (1, 0, 20), window=HOUR)
    with story.ledger.planning(FEED, TOPIC) as session:
        session.record_look(snapshot_of(FULL), ())
        session.freeze(HOUR, [batch], (), owner=story_owner, lease=timedelta(minutes=1))
    attempt = story.begin(batch.batch_id)
    files = story.verify(attempt).files
    story.ledger.commit(attempt)
    return batch.batch_id, files[0].name


story_owner: Any = "run 1"


def told(story: LedgerStory, *findings: Any) -> list[FindingPart]:
    story.ledger.record_findings(FEED, findings)
    return story.ledger.told_findings(story.ledger.findings(FEED))


def missing(batch: str, file: str | None, until: int = 10, partition: int = 0) -> Any:
    return a_finding(
        "A8", partition=partition, from_offset=0, until_offset=until,
        evidence=of_file(batch, file), next_step="Land it: tallystick repair orders NUMBER. So.",
    )  # fmt: skip


def test_a_missing_file_is_so_many_rows_of_its_window_which_kafka_keeps_for_so_long(
    story: LedgerStory,
) -> None:
    batch, file = landed(story)
    seen = look(story)
    (part,) = told(story, missing(batch, file))
    assert part.extent == Extent(
        offsets=10, rows=10, since=HOUR.from_instant, until=HOUR.until_instant, kept=10,
        kept_until=NOON + WEEK, looked_at=seen,
    )  # fmt: skip


def test_no_time_is_promised_where_size_or_compaction_may_take_them_first(
    story: LedgerStory,
) -> None:
    batch, file = landed(story)
    policies = [({"retention_bytes": 10**9}, 10), ({"is_compacted": True}, None)]
    for number, (policy, kept) in enumerate(policies):
        with story.ledger.planning(FEED, TOPIC) as session:
            session.record_look(replace(snapshot_of(FULL), **policy), ())
        part = told(story, missing(batch, file, until=10 - number))[-1]
        assert part.extent
        assert (part.extent.kept, part.extent.kept_until) == (kept, None)


@pytest.mark.parametrize(
    ("bounds", "topic_id", "kept"),
    [
        ({0: (4, 20)}, None, 6),
        ({0: (10, 20)}, None, 0),
        ({0: (0, 7)}, None, 7),
        ({1: (0, 20)}, None, None),
        ({0: (0, 20)}, "another", 0),
    ],
)
def test_what_kafka_has_is_what_the_newest_look_shows_of_that_log(
    story: LedgerStory, bounds: Any, topic_id: str | None, kept: int | None
) -> None:
    batch, file = landed(story)
    look(story, bounds, **({"topic_id": topic_id} if topic_id else {}))
    (part,) = told(story, missing(batch, file))
    assert part.extent
    assert part.extent.kept == kept


def test_rows_that_no_whole_file_counts_are_told_as_offsets(story: LedgerStory) -> None:
    batch, file = landed(story)
    (part,) = told(story, missing(batch, file, until=5))
    assert part.extent
    assert (part.extent.offsets, part.extent.rows) == (5, None)


def test_a_finding_about_a_batch_is_about_all_its_rows(story: LedgerStory) -> None:
    batch, _ = landed(story)
    whole = a_finding(
        "N3", partition=None, generation=None, from_offset=None, until_offset=None, subject=batch,
        evidence=of_batch(batch),
    )  # fmt: skip
    (part,) = told(story, whole)
    assert part.extent
    assert (part.extent.offsets, part.extent.rows) == (30, 30)


def test_what_waits_is_kept_until_the_newest_report_says_and_what_no_log_tells_has_no_extent(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 20)})
    look(story)
    story.ledger.store_report(a_report())
    newest = story.ledger.newest_bounds(FEED)
    whole = a_finding(
        "U1", partition=None, generation=None, from_offset=None, until_offset=None, subject="/x"
    )
    waits, silent = told(story, a_finding("W1"), whole)
    assert newest
    assert waits.extent
    assert (waits.extent.kept, waits.extent.kept_until) == (5, newest.lost_at)
    assert silent.extent is None


def test_a_trouble_adds_up_what_its_findings_are_about_and_names_all_their_numbers(
    story: LedgerStory,
) -> None:
    batch, file = landed(story)
    other = file.replace("00000.parquet", "00001.parquet")
    look(story)
    found = told(
        story, missing(batch, file), missing(batch, other, until=20, partition=1), a_finding("W1")
    )
    several = troubles_of(replace(each, trouble="one") for each in found if each.code == "A8")[0]
    assert several.extent
    assert (several.extent.rows, several.extent.kept) == (30, 30)
    assert several.next_steps == ("Land it: tallystick repair orders 1 2. So.",)
    assert found[0].next_step == "Land it: tallystick repair orders 1. So."


def test_an_offset_that_two_findings_are_about_counts_once() -> None:
    ten, five = Extent(offsets=10, rows=9, kept=10), Extent(offsets=5, rows=5, kept=0)
    assert all_together([((0, 1, 0, 10), ten), ((0, 1, 0, 10), ten)]) == ten
    both = all_together([((0, 1, 0, 10), ten), ((0, 1, 8, 13), five)])
    assert both == Extent(offsets=13)
    assert all_together([((0, 1, 0, 10), ten), ((0, 2, 0, 5), five)]) == Extent(
        offsets=15, rows=14, kept=10
    )


DAY = datetime.fromisoformat("2026-11-25T00:00+00:00")
SEEN = datetime.fromisoformat("2026-11-28T02:00+00:00")
OF_A_DAY = Extent(
    offsets=3_000, rows=2_760, since=DAY, until=DAY + timedelta(days=1), is_by_time=True,
    kept=3_000, kept_until=DAY + timedelta(days=7), looked_at=SEEN,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "code", "verdict", "said"),
    [
        ({}, "A8", "PROVEN_LOSS", "2 760 rows of 2026-11-25 are missing. Kafka has all of them"
         " until about 2026-12-02 00:00Z (seen 2026-11-28 02:00Z)."),
        ({"kept": 0}, "A8", "PROVEN_LOSS", "2 760 rows of 2026-11-25 are missing. Kafka has them"
         " no more (seen 2026-11-28 02:00Z)."),
        ({"kept": None}, "A8", "UNKNOWN", "2 760 rows of 2026-11-25 may be missing. If Kafka still"
         " has them is unknown: the look of 2026-11-28 02:00Z does not tell."),
        ({"kept": 100, "kept_until": DAY}, "C1", "PROVEN_LOSS", "2 760 rows of 2026-11-25 are not"
         " as they were. Kafka has 100 of the offsets, and may delete them at any moment (seen"
         " 2026-11-28 02:00Z)."),
        ({"rows": None, "offsets": 1, "kept": 1, "since": None, "kept_until": None}, "W1",
         "SUSPECTED", "1 offset waits. Kafka has all of them (seen 2026-11-28 02:00Z)."),
        ({"is_by_time": False, "kept": None, "looked_at": None}, "A8", "PROVEN_LOSS",
         "2 760 rows landed under 2026-11-25 are missing."),
        ({"until": None, "looked_at": None}, "B2", "PROVEN_DUP",
         "2 760 rows of the batch of 2026-11-25 00:00Z are there twice."),
    ],
)  # fmt: skip
def test_how_much_is_said_in_a_sentence(changes: Any, code: str, verdict: str, said: str) -> None:
    extent = replace(OF_A_DAY, **changes)
    part = a_part(
        code=code, verdict=Verdict(verdict), extent=extent, from_offset=0,
        until_offset=extent.offsets,
    )  # fmt: skip
    assert concern_text(Trouble("", (part,))) == said
