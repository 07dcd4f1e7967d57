"""What the ledger promises of publishing, sweeping, findings and reading."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

import pytest

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FeedName
from tallystick.domain.planning.log_changes import EndedGeneration, LogChanges
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BatchUnknown, LedgerRefused
from tests.support.ledger_story import (
    FEED,
    HOUR,
    NO_TIME,
    OWNER,
    LedgerStory,
    finding_of,
    opened,
)

OTHER = FeedName("other")
HALF_AN_HOUR = timedelta(minutes=30)


@pytest.fixture
def log(story: LedgerStory) -> LedgerStory:
    """A ledger with two partitions open."""
    story.open({0: (0, 1000), 1: (0, 1000)})
    return story


def dead(story: LedgerStory) -> list[tuple[str, bool]]:
    found = story.ledger.dead_attempts(FEED)
    return [(each.attempt.attempt_id, each.has_committed) for each in found]


# Publishing ---------------------------------------------------------------------------------------


def test_unpublished_batches_come_in_the_order_of_their_commits(log: LedgerStory) -> None:
    first, second, third = (log.verified((0, n, n + 10)) for n in (0, 10, 20))
    for attempt in (third, first, second):
        log.ledger.commit(attempt)
    log.ledger.mark_published(first.batch_id)
    found = log.ledger.unpublished(FEED)
    assert [each.plan.batch_id for each in found] == [third.batch_id, second.batch_id]
    assert log.ledger.unpublished(OTHER) == []


def test_publishing_twice_changes_nothing(log: LedgerStory) -> None:
    attempt = log.committed((0, 0, 10))
    log.ledger.mark_published(attempt.batch_id)
    (before,) = log.ledger.batches(FEED)
    log.ledger.mark_published(attempt.batch_id)
    assert log.ledger.batches(FEED) == [before]
    assert before.status.state is BatchState.PUBLISHED
    assert before.committed_at
    assert before.published_at
    assert before.published_at >= before.committed_at
    found = log.ledger.committed_batch(attempt.batch_id)
    assert found
    assert found.state is BatchState.PUBLISHED


def test_a_committed_batch_brings_the_very_text_that_was_proven(log: LedgerStory) -> None:
    attempt = log.begin(log.planned((0, 0, 10)))
    manifest = log.verify(attempt)
    assert log.ledger.committed_batch(attempt.batch_id) is None
    log.ledger.commit(attempt)
    found = log.ledger.committed_batch(attempt.batch_id)
    assert found
    assert (found.manifest, found.manifest_text) == (manifest, manifest.to_json())
    assert (found.plan, found.attempt_id) == (manifest.plan, attempt.attempt_id)
    assert found.state is BatchState.COMMITTED
    assert found.manifest_sha256 == sha256(manifest.to_json().encode()).digest()
    assert log.ledger.unpublished(FEED) == [found]


def test_what_is_not_committed_cannot_be_published(log: LedgerStory) -> None:
    attempt = log.verified((0, 0, 10))
    with pytest.raises(LedgerRefused, match="is verified, not committed"):
        log.ledger.mark_published(attempt.batch_id)
    with pytest.raises(BatchUnknown):
        log.ledger.mark_published(BatchId("f" * 16))


# Sweeping -----------------------------------------------------------------------------------------


def test_a_living_attempt_is_not_dead(log: LedgerStory) -> None:
    log.begin(log.planned((0, 0, 10)))
    log.verified((0, 10, 20))
    failed = log.begin(log.planned((0, 20, 30)))
    log.ledger.record_failure(failed, "it may still be tried again under this token")
    expired = log.begin(log.planned((0, 30, 40)), lease=NO_TIME)
    assert log.status(expired.batch_id).holder is None
    assert dead(log) == []


def test_an_attempt_is_dead_once_a_newer_one_exists(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 10))
    old, middle, _ = log.begin(batch), log.begin(batch), log.begin(batch)
    assert dead(log) == [(old.attempt_id, False), (middle.attempt_id, False)]
    log.ledger.mark_swept(old.attempt_id)
    log.ledger.mark_swept(old.attempt_id)
    assert dead(log) == [(middle.attempt_id, False)]
    assert log.ledger.dead_attempts(OTHER) == []


def test_the_committing_attempt_is_swept_after_publishing_only(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 10))
    old = log.begin(batch)
    winner = log.begin(batch)
    log.verify(winner)
    log.ledger.commit(winner)
    assert dead(log) == [(old.attempt_id, False)]
    log.ledger.mark_published(batch)
    assert dead(log) == [(old.attempt_id, False), (winner.attempt_id, True)]


def test_attempts_of_an_abandoned_batch_are_dead(log: LedgerStory) -> None:
    attempt = log.verified((0, 0, 10))
    closed = EndedGeneration(log.account().generation_id, FindingCode.TOPIC_RECREATED, "gone")
    log.change(LogChanges(closed=[closed]))
    assert dead(log) == [(attempt.attempt_id, False)]


def test_only_published_and_abandoned_batches_are_over(log: LedgerStory) -> None:
    planned, landing = log.planned((0, 0, 5)), log.begin(log.planned((0, 5, 10))).batch_id
    verified, committed = log.verified((0, 10, 15)).batch_id, log.committed((0, 15, 20)).batch_id
    published = log.committed((0, 20, 25)).batch_id
    log.ledger.mark_published(published)
    abandoned = log.planned((1, 0, 5))
    closed = EndedGeneration(log.account(1).generation_id, FindingCode.TOPIC_RECREATED, "gone")
    log.change(LogChanges(closed=[closed]))
    everything = [planned, landing, verified, committed, published, abandoned, BatchId("f" * 16)]
    assert log.ledger.batches_over(FEED, everything) == [published, abandoned]
    assert log.ledger.batches_over(FEED, [planned]) == []
    assert log.ledger.batches_over(OTHER, everything) == []


def test_every_root_of_a_feed_is_known(log: LedgerStory) -> None:
    assert log.ledger.roots(FEED) == []
    log.planned((0, 0, 5))
    batch = replace(log.batch_of((0, 5, 10)), root="/elsewhere")
    log.freeze(batch, log.batch_of((0, 10, 15)))
    assert log.ledger.roots(FEED) == ["/elsewhere", log.batch_of((0, 15, 20)).root]
    assert log.ledger.roots(OTHER) == []


# Waiting ------------------------------------------------------------------------------------------


def waited(story: LedgerStory) -> dict[str, float]:
    return {each.batch_id: each.seconds for each in story.ledger.waiting(FEED)}


def test_who_is_held_or_over_does_not_wait(log: LedgerStory) -> None:
    log.planned((0, 0, 5))
    log.begin(log.planned((0, 5, 10)))
    log.verified((0, 10, 15))
    log.ledger.mark_published(log.committed((0, 15, 20)).batch_id)
    assert waited(log) == {}


def test_a_batch_waits_from_the_end_of_its_lease(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 5), lease=-HALF_AN_HOUR)
    attempt = log.begin(log.planned((0, 5, 10)), lease=-2 * HALF_AN_HOUR)
    found = waited(log)
    assert list(found) == [batch, attempt.batch_id]
    assert found[batch] == pytest.approx(1800, abs=60)
    assert found[attempt.batch_id] == pytest.approx(3600, abs=60)
    assert log.ledger.waiting(OTHER) == []


def test_a_batch_waits_from_the_end_of_the_attempt_that_gave_its_lease_back(
    log: LedgerStory,
) -> None:
    batch = log.planned((0, 0, 5), lease=-HALF_AN_HOUR)
    first = log.begin(batch, lease=-HALF_AN_HOUR)
    log.ledger.record_failure(first, "no disk")
    second = log.begin(batch)
    log.ledger.record_failure(second, "no disk either")
    assert log.ask("SELECT lease_until FROM batch") == [(None,)]
    with log.raw() as hand:
        hand.execute("UPDATE attempt SET ended_at = ended_at - interval '5 hours' WHERE token = 1")
    assert waited(log) == {batch: pytest.approx(0, abs=60)}
    with log.raw() as hand:
        hand.execute("UPDATE attempt SET ended_at = ended_at - interval '2 hours' WHERE token = 2")
    assert waited(log) == {batch: pytest.approx(7200, abs=60)}


def test_a_committed_batch_waits_from_its_commit_once_its_lease_is_over(log: LedgerStory) -> None:
    batch = log.planned((0, 0, 5), lease=-HALF_AN_HOUR)
    attempt = log.begin(batch)
    log.verify(attempt)
    log.ledger.commit(attempt)
    assert log.ledger.waiting(FEED) == []
    with log.raw() as hand:
        hand.execute("UPDATE batch SET lease_until = clock_timestamp()")
    (found,) = log.ledger.waiting(FEED)
    assert (found.batch_id, found.state) == (batch, BatchState.COMMITTED)
    assert found.seconds == pytest.approx(0, abs=60)


# Findings -----------------------------------------------------------------------------------------


def test_a_finding_is_read_back_as_it_was_stated(log: LedgerStory) -> None:
    finding = finding_of(3, 9, log_start_offset=9, seen_at="noon")
    bare = replace(
        finding,
        rule=RULE_OF[FindingCode.COULD_NOT_TELL],
        name="",
        verdict=Verdict.UNKNOWN,
        generation=None,
        partition=None,
        from_offset=None,
        until_offset=None,
    )
    log.ledger.record_findings(FEED, [finding, bare])
    found = log.ledger.findings(FEED)
    assert [each.finding for each in found] == [finding, bare]
    assert log.ledger.findings(OTHER) == []


def test_a_finding_seen_again_is_confirmed_in_its_newest_words(log: LedgerStory) -> None:
    bare = replace(
        finding_of(), generation=None, partition=None, from_offset=None, until_offset=None
    )
    for _ in range(2):
        log.ledger.record_findings(FEED, [finding_of(cause="once."), bare])
    log.ledger.record_findings(FEED, [finding_of(cause="again."), finding_of(cause="and again.")])
    first, other = log.ledger.findings(FEED)
    assert (first.finding.cause, other.finding) == ("and again.", bare)
    assert first.first_seen_at < first.last_confirmed_at
    assert other.last_confirmed_at < first.last_confirmed_at


@pytest.mark.parametrize(
    "different",
    [
        {
            "rule": RULE_OF[FindingCode.TOPIC_RECREATED],
            "name": RULE_OF[FindingCode.TOPIC_RECREATED].name,
        },
        {"partition": 1},
        {"generation": 2},
        {"from_offset": 1},
        {"until_offset": 6},
        {"subject": "/landing/orders/copy.parquet"},
    ],
)
def test_another_place_or_code_is_another_finding(
    log: LedgerStory, different: dict[str, object]
) -> None:
    log.ledger.record_findings(FEED, [finding_of()])
    log.ledger.record_findings(FEED, [replace(finding_of(), **different)])  # type: ignore[arg-type]
    assert len(log.ledger.findings(FEED)) == 2


def test_findings_without_an_interval_are_told_apart_by_their_subject(log: LedgerStory) -> None:
    bare = replace(finding_of(), generation=None, partition=None, from_offset=None,
                   until_offset=None)  # fmt: skip
    # Longer than an index entry, and not even two texts once it is stored.
    paths = ["/one", "/" + "x" * 8000, "/bad \0", "/bad \N{REPLACEMENT CHARACTER}"]
    for _ in range(2):
        log.ledger.record_findings(FEED, [replace(bare, subject=path) for path in paths])
    found = [each.finding.subject for each in log.ledger.findings(FEED)]
    assert found == ["/one", "/" + "x" * 8000, "/bad \N{REPLACEMENT CHARACTER}"]
    changed = replace(bare, subject="/one", verdict=Verdict.UNKNOWN)
    log.ledger.record_findings(FEED, [changed])
    assert [each.finding.verdict.value for each in log.ledger.findings(FEED)] == [
        "PROVEN_LOSS",
        "PROVEN_LOSS",
        "UNKNOWN",
    ]


def test_another_verdict_supersedes_the_finding_and_keeps_it(log: LedgerStory) -> None:
    log.ledger.record_findings(FEED, [finding_of(verdict=Verdict.UNKNOWN)])
    log.ledger.record_findings(FEED, [finding_of(verdict=Verdict.PROVEN_LOSS)])
    (stored,) = log.ledger.findings(FEED)
    assert stored.finding.verdict is Verdict.PROVEN_LOSS
    kept = log.ask("SELECT verdict::text, state::text FROM finding ORDER BY finding_id")
    assert kept == [("UNKNOWN", "superseded"), ("PROVEN_LOSS", "open")]


def test_findings_keep_texts_that_postgresql_would_refuse(log: LedgerStory) -> None:
    awkward = "zero \0, half a pair \ud800, backslash-u \\u0000"
    log.ledger.record_findings(FEED, [finding_of(cause=awkward, said=awkward, seen_at=HOUR)])
    (stored,) = log.ledger.findings(FEED)
    assert stored.finding.cause == "zero \ufffd, half a pair ?, backslash-u \\u0000"
    assert stored.finding.evidence == {"said": stored.finding.cause, "seen_at": str(HOUR)}
    attempt = log.begin(log.planned((0, 0, 5)))
    log.ledger.record_failure(attempt, awkward)
    assert log.ledger.batches(FEED)[0].attempts[0].outcome == f"failed: {stored.finding.cause}"


def test_findings_need_no_plan_before_them(story: LedgerStory) -> None:
    story.ledger.record_findings(FEED, [finding_of()])
    story.ledger.record_findings(FEED, [])
    assert len(story.ledger.findings(FEED)) == 1


# Reading ------------------------------------------------------------------------------------------


def test_batches_come_oldest_first_with_their_story(log: LedgerStory) -> None:
    done = log.committed((0, 0, 10), (1, 0, 5))
    waiting = log.planned((0, 10, 20), window=HOUR)
    tried = log.begin(log.planned((0, 20, 30)), owner=OWNER)
    log.ledger.record_application(tried, "app-7")
    log.ledger.record_failure(tried, "no disk")
    first, second, third = log.ledger.batches(FEED)
    assert first.status.committed_by == done.attempt_id
    assert [each.planned.offsets.until_offset for each in first.ranges] == [10, 5]
    assert (second.status.plan.batch_id, second.status.plan.window) == (waiting, HOUR)
    assert (second.attempts, second.ranges, second.committed_at) == ([], (), None)
    (attempt,) = third.attempts
    assert (attempt.attempt, attempt.application_id) == (tried, "app-7")
    assert attempt.outcome == "failed: no disk"
    assert attempt.ended_at
    assert attempt.ended_at >= attempt.started_at
    assert log.ledger.batches(OTHER) == []


def test_files_come_in_the_order_of_commit_then_by_name(log: LedgerStory) -> None:
    early, late = log.verified((1, 0, 5), (0, 0, 5)), log.verified((0, 5, 9))
    for attempt in (late, early):
        log.ledger.commit(attempt)
    log.ledger.mark_published(late.batch_id)
    found = log.ledger.files(FEED)
    assert [(each.batch_id, each.is_published) for each in found] == [
        (late.batch_id, True),
        (early.batch_id, False),
        (early.batch_id, False),
    ]
    names = [each.file.name for each in found]
    assert names[1:] == sorted(names[1:])
    assert found[0].attempt_id == late.attempt_id
    assert found[0].plan == log.status(late.batch_id).plan
    (held,) = found[0].file.slices
    assert (held.partition, held.first_offset, held.last_offset, held.record_count) == (0, 5, 8, 4)


def test_bytes_per_record_are_those_of_the_newest_batches(log: LedgerStory) -> None:
    first = log.planned((0, 40, 50))
    assert log.ledger.batch_to_land(first).bytes_per_record is None
    for start, size in ((0, 10), (10, 40)):
        attempt = log.begin(log.planned((0, start, start + 10)))
        log.verify(attempt, bytes_per_record=size)
        log.ledger.commit(attempt)
    assert log.ledger.batch_to_land(first).bytes_per_record == 25.0


def test_generations_come_by_partition_oldest_first(log: LedgerStory) -> None:
    old = log.account(0).generation_id
    log.change(
        LogChanges(
            closed=[EndedGeneration(old, FindingCode.TOPIC_RECREATED, "another topic id")],
            opened=[opened(0, ordinal=2, topic_id="topic-id-2")],
        )
    )
    found = log.ledger.generations(FEED)
    assert {p: [each.ordinal for each in of] for p, of in found.items()} == {0: [1, 2], 1: [1]}
    assert found[1] == [log.account(1)]
    assert not log.ledger.generations(OTHER)


def test_nothing_is_lost_in_a_feed_without_losses(log: LedgerStory) -> None:
    log.committed((0, 0, 5))
    assert log.ledger.lost(FEED) == []
