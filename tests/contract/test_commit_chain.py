"""The chain of commits: every commit is in it, once, bound to its manifest and to all before it."""

from __future__ import annotations

import threading
from dataclasses import replace
from hashlib import sha256
from typing import Any

import psycopg
import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import FeedName
from tallystick.ledger.texts import decompressed
from tests.support.ledger_story import FEED, LedgerStory

LINKS = """
SELECT l.position, l.batch_id, l.manifest_sha256, l.previous, l.digest, v.manifest
  FROM commit_link l JOIN batch b USING (batch_id) JOIN verification v USING (verification_id)
 WHERE l.feed = '{}' ORDER BY l.position
"""


def links(story: LedgerStory, feed: str = FEED) -> list[Any]:
    return list(story.ask(LINKS.format(feed)))


def require_whole(story: LedgerStory, feed: str = FEED) -> list[str]:
    """The batches of the chain, after each link was computed again from the manifests alone."""
    digest, batches = sha256(feed.encode()).digest(), []
    for place, row in enumerate(links(story, feed), start=1):
        position, batch_id, manifest_sha256, previous, linked, manifest = row
        assert manifest_sha256 == sha256(decompressed(manifest).encode()).digest()
        assert (position, previous) == (place, digest)
        digest = sha256(previous + manifest_sha256).digest()
        assert linked == digest
        batches.append(batch_id)
    return batches


def test_each_commit_is_bound_to_its_manifest_and_to_all_before_it(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    committed = [story.committed((0, at, at + 10)).batch_id for at in (0, 20, 10)]
    story.planned((0, 30, 40))

    assert require_whole(story) == committed


def test_the_second_commit_of_an_attempt_adds_no_link(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.committed((0, 0, 20))
    story.ledger.commit(attempt)

    assert require_whole(story) == [attempt.batch_id]


def test_commits_at_once_make_one_chain(story: LedgerStory) -> None:
    story.open(dict.fromkeys(range(8), (0, 100)))
    verified = [story.verified((partition, 0, 20)) for partition in range(8)]
    gate = threading.Barrier(len(verified))

    def commit(place: int) -> None:
        mine = story.another()
        gate.wait(20)
        mine.ledger.commit(verified[place])
        mine.ledger.close()

    threads = [threading.Thread(target=commit, args=(each,)) for each in range(len(verified))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(require_whole(story)) == sorted(each.batch_id for each in verified)


def test_each_feed_has_a_chain_of_its_own(story: LedgerStory) -> None:
    other = LedgerStory(story.dsn, FeedName("payments"))
    for each in (story, other):
        each.open({0: (0, 100)})
        each.committed((0, 0, 10))
    story.committed((0, 10, 20))

    assert (len(require_whole(story)), len(require_whole(story, "payments"))) == (2, 1)
    other.ledger.close()


def test_a_repair_and_folding_only_add_to_the_chain(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    old = [story.committed((0, at, at + 10)).batch_id for at in (0, 10)]
    before = links(story)
    [file] = [each for each in story.ledger.files(FEED) if each.batch_id == old[0]]
    repair = story.batch_of((0, 0, 10))
    repair = replace(repair, replaces=(CommittedFile(old[0], file.file.name),))
    story.freeze(repair)
    attempt = story.begin(repair.batch_id)
    story.verify(attempt)
    story.ledger.commit(attempt)
    for each in story.ledger.unpublished(FEED):
        story.ledger.mark_published(each.plan.batch_id)
    story.ledger.fold(FEED)

    assert require_whole(story) == [*old, repair.batch_id]
    assert links(story)[:2] == before


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DELETE FROM commit_link", "is evidence and never changes"),
        ("UPDATE commit_link SET position = 9", "is evidence and never changes"),
        (
            "INSERT INTO commit_link SELECT feed, 2, '{planned}', manifest_sha256, digest,"
            " sha256(digest || manifest_sha256) FROM commit_link",
            "does not name a committed manifest",
        ),
        (
            "INSERT INTO commit_link SELECT feed, 1, '{planned}', manifest_sha256, previous, digest"
            " FROM commit_link",
            "does not continue its chain",
        ),
        (
            "INSERT INTO commit_link SELECT feed, 2, '{planned}', manifest_sha256, previous, digest"
            " FROM commit_link",
            "does not continue its chain",
        ),
        (
            "UPDATE batch b SET state = 'committed', committed_by = a.attempt_id,"
            " record_count = 10,"
            " hole_count = 0, byte_count = 10, committed_at = now(), holder = NULL,"
            " lease_until = NULL, commit_number = nextval('commit_number')"
            " FROM attempt a WHERE a.batch_id = b.batch_id AND b.state = 'verified';"
            " UPDATE offset_range SET state = 'released' WHERE state = 'claimed';"
            " SET CONSTRAINTS ALL IMMEDIATE",
            "chain of commits has no link for it",
        ),
    ],
)
def test_nobody_writes_beside_the_chain(story: LedgerStory, statement: str, why: str) -> None:
    story.open({0: (0, 100)})
    story.committed((0, 0, 10))
    story.verified((0, 10, 20))
    planned = story.planned((0, 20, 30))

    with story.raw() as hand, pytest.raises(psycopg.Error, match=why), hand.transaction():
        hand.execute(statement.format(planned=planned).encode())
