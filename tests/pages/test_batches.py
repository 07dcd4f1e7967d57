"""What pages say of batches: where they lie, what they hold, who says so, what replaced them."""

from __future__ import annotations

import re

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.ledger.batches import Replaced
from tallystick.web import landed, reading
from tallystick.web.pages import rendered
from tests.contract.test_ledger_repair import holes_in, repair_of
from tests.contract.test_ledger_repair import landed as landed_in_files
from tests.support.ledger_story import FEED, HOUR, OWNER, LedgerStory


def page_of(story: LedgerStory, batch_id: BatchId) -> str:
    answer = landed.batch_of(story.ledger, batch_id, FEED)
    return rendered("batch.html", f"/batches/{batch_id}", answer=answer)


def rows_of_run(story: LedgerStory) -> dict[str, str]:
    """The table of a run's batches: by batch, the text of its row."""
    answer = reading.run_of(story.ledger, FEED, OWNER)
    page = rendered("run.html", "/run", answer=answer, acts=None)
    rows = re.findall(r'<tr><th scope="row"><a href="batches/(\w+)">(.*?)</tr>', page)
    return {batch_id: re.sub(r"<[^>]+>", "|", row) for batch_id, row in rows}


def repaired(story: LedgerStory, *cuts: int) -> tuple[BatchId, list[BatchId]]:
    """A batch of files that begin at these offsets, [0, 100) in all, and repairs of each file."""
    bounds = (*cuts, 100)
    files = landed_in_files(story, bounds)
    repairs = []
    for number, file in enumerate(files):
        start, until = bounds[number], bounds[number + 1]
        attempt = story.begin(repair_of(story, file, start, until).batch_id)
        story.verify(attempt, holes={0: holes_in(start, until)})
        story.ledger.commit(attempt)
        story.ledger.mark_published(attempt.batch_id)
        repairs.append(attempt.batch_id)
    return files[0].batch_id, repairs


def test_a_batch_says_where_it_lies_what_it_holds_and_how_it_is_read(story: LedgerStory) -> None:
    story.open({0: (0, 20), 1: (0, 9)})
    attempt = story.begin(story.planned((0, 0, 20), (1, 0, 9), window=HOUR))
    story.verify(attempt, holes={0: {HoleClass.ABORTED: OffsetRuns.of([(4, 7)])}})
    story.ledger.commit(attempt)
    batch_id = attempt.batch_id
    assert landed.batch_of(story.ledger, batch_id, FEED).commands == ()
    story.ledger.mark_published(batch_id)

    answer, page = landed.batch_of(story.ledger, batch_id, FEED), page_of(story, batch_id)

    directory = f"/landing/orders/gen=1/dt=2026-11-01/hour=11/batch={batch_id}"
    assert (answer.feed, answer.batch.directory) == ("orders", directory)
    assert [(each.partition, each.rows, each.holes) for each in answer.batch.ranges] == [
        (0, 17, {"control": 0, "aborted": 3, "compacted": 0}),
        (1, 9, {"control": 0, "aborted": 0, "compacted": 0}),
    ]
    assert [(each.partition, each.from_offset, each.until_offset) for each in answer.files] == [
        (0, 0, 20),
        (1, 0, 9),
    ]
    assert answer.commands == [
        f"hdfs dfs -ls {directory}",
        f'spark.read.parquet("{directory}")',
        f"tallystick files orders --find {batch_id}",
    ]
    assert f"hdfs dfs -ls {directory}" in page
    assert f"{batch_id}-{attempt.attempt_id}-00000.parquet" in page
    assert "<td>[0, 20)</td><td>17</td><td>0</td><td>3</td><td>0</td>" in page
    assert "crc32c:00000000" in page


def test_a_batch_says_who_has_proven_it_and_when(story: LedgerStory) -> None:
    story.open({0: (0, 20)})
    waiting = story.planned((0, 10, 20))
    assert "Nothing is proven before the commit." in page_of(story, waiting)
    batch_id = story.committed((0, 0, 10)).batch_id
    story.ledger.mark_published(batch_id)
    for is_clean in (False, True):
        story.ledger.record_offsets_look(batch_id, is_clean=is_clean)
    story.ledger.record_unread([batch_id], Level.L3)

    page = page_of(story, batch_id)

    assert "Its files were read back before the commit" in page
    assert re.search(
        r"L2, the offset columns read again, <time [^>]+>[\d: -]+Z</time>: clean", page
    )
    assert re.search(
        r"L3, every row read, <time [^>]+>[\d: -]+Z</time>: could not be read whole", page
    )
    assert "a finding stands" not in page


def test_a_replaced_batch_is_not_called_published_and_names_what_took_its_place(
    story: LedgerStory,
) -> None:
    batch_id, repairs = repaired(story, 0, 40)

    record = landed.batch_of(story.ledger, batch_id, FEED)
    assert record.batch.replaced == Replaced(sorted(repairs), is_whole=True)
    assert record.commands == ()
    assert [each.replaced_by for each in record.files] == repairs
    page, row = page_of(story, batch_id), rows_of_run(story)[batch_id]
    assert 'class="verdict">replaced</span>' in page
    assert all(f'href="../batches/{each}"' in page for each in repairs)
    assert "published" not in row
    assert re.search(r"\|replaced by .*\|-\|.*\|-\|.*\|-\|.*\|-\|", row)
    assert landed.batch_of(story.ledger, repairs[0], FEED).batch.replaces == [batch_id]
    assert f'A repair, for files of</dt><dd><a href="../batches/{batch_id}">' in page_of(
        story, repairs[0]
    )


def test_a_batch_that_lost_one_of_its_files_is_read_still(story: LedgerStory) -> None:
    files = landed_in_files(story)
    attempt = story.begin(repair_of(story, files[1], 20, 50).batch_id)
    story.verify(attempt, holes={0: holes_in(20, 50)})
    assert landed.batch_of(story.ledger, files[0].batch_id, FEED).batch.replaced is None
    story.ledger.commit(attempt)

    row = rows_of_run(story)[files[0].batch_id]

    assert "published, in part replaced by " in row
    assert "|87|" in row
    assert landed.batch_of(story.ledger, files[0].batch_id, FEED).commands


def test_a_list_of_batches_tells_the_ranges_of_those_that_have_few(story: LedgerStory) -> None:
    story.open(dict.fromkeys(range(4), (0, 9)))
    many = story.committed(*((each, 0, 5) for each in range(4))).batch_id
    few = story.committed((0, 5, 7), (2, 5, 9)).batch_id
    waiting = story.planned((1, 5, 9))

    answer = landed.batches_of(story.ledger, FEED, None, 20)

    assert {
        batch_id: [(each.partition, each.from_offset, each.until_offset) for each in found]
        for batch_id, found in answer.ranges.items()
    } == {few: [(0, 5, 7), (2, 5, 9)], waiting: [(1, 5, 9)]}
    rows = rows_of_run(story)
    assert "4 partitions" in rows[many]
    assert "0: [5, 7)" in rows[few]
    assert "1: [5, 9)" in rows[waiting]


def test_a_long_batch_is_cut_short_and_says_how_to_see_the_rest(story: LedgerStory) -> None:
    story.open(dict.fromkeys(range(205), (0, 5)))
    batch_id = story.committed(*((each, 0, 5) for each in range(205))).batch_id

    page = page_of(story, batch_id)

    assert page.count(f"And 5 more: <code>tallystick files orders --find {batch_id}</code>") == 2
    assert page.count("<td>[0, 5)</td>") == 400
