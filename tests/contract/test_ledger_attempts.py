"""What the ledger promises of attempts: tokens, leases, what is written down."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from hashlib import sha256

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.manifest_texts import whole_text
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, BatchId, FencingToken
from tallystick.domain.planning.log_changes import EndedGeneration, LogChanges
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import AttemptFenced, BatchBusy, BatchUnknown, LedgerRefused
from tallystick.ledger.texts import compressed, decompressed
from tests.support.ledger_story import (
    FEED,
    MINUTE,
    NO_TIME,
    OWNER,
    RIVAL,
    LedgerStory,
    manifest_of,
)


@pytest.fixture
def batch(story: LedgerStory) -> BatchId:
    """A planned batch, held by nobody."""
    story.open({0: (0, 100)})
    return story.planned((0, 0, 10), lease=NO_TIME)


def attempts_of(story: LedgerStory) -> list[tuple[str, int, str | None, str | None]]:
    (record,) = story.ledger.batches(FEED)
    return [
        (each.attempt.attempt_id, each.attempt.token, each.application_id, each.outcome)
        for each in record.attempts
    ]


def test_an_unknown_batch_is_said_to_be_unknown(story: LedgerStory) -> None:
    with pytest.raises(BatchUnknown, match="batch 0123456789abcdef is not in the ledger"):
        story.status(BatchId("0123456789abcdef"))
    with pytest.raises(BatchUnknown):
        story.begin(BatchId("0123456789abcdef"))


def test_tokens_grow_with_each_attempt(story: LedgerStory, batch: BatchId) -> None:
    tokens = [story.begin(batch).token for _ in range(3)]
    assert tokens == [1, 2, 3]
    status = story.status(batch)
    assert (status.state, status.newest_token, status.holder) == (BatchState.LANDING, 3, OWNER)


def unheard(story: LedgerStory, attempt: Attempt) -> float:
    seconds = story.ledger.unheard_seconds(attempt.attempt_id)
    assert seconds is not None
    return seconds


def test_an_attempt_is_heard_of_until_its_lease_ends(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch)
    assert -60 <= unheard(story, attempt) < -30
    story.ledger.renew_lease(attempt, NO_TIME)
    assert 0 <= unheard(story, attempt) < 30
    story.ledger.renew_lease(attempt, 5 * MINUTE)
    assert unheard(story, attempt) < -240
    assert story.ledger.unheard_seconds(AttemptId("f" * 16)) is None


def test_an_attempt_is_not_heard_of_after_its_end_or_a_newer_ones_beginning(
    story: LedgerStory, batch: BatchId
) -> None:
    older, newer = story.begin(batch), story.begin(batch)
    assert 0 <= unheard(story, older) < 30
    assert unheard(story, newer) < -30
    story.ledger.record_failure(newer, "it failed")
    assert 0 <= unheard(story, newer) < 30


def test_a_batch_with_a_living_owner_is_busy_for_others(story: LedgerStory, batch: BatchId) -> None:
    story.begin(batch, owner=OWNER)
    with pytest.raises(BatchBusy, match=f"batch {batch} is held by run 1 for another [56][0-9] s"):
        story.begin(batch, owner=RIVAL)
    assert story.status(batch).newest_token == 1


def test_the_planners_lease_keeps_others_away_before_the_first_attempt(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = story.planned((0, 0, 10), owner=OWNER)
    with pytest.raises(BatchBusy):
        story.begin(batch, owner=RIVAL)
    assert story.begin(batch, owner=OWNER).token == 1


def test_the_same_owner_takes_over_at_once(story: LedgerStory, batch: BatchId) -> None:
    assert [story.begin(batch, owner=OWNER).token for _ in range(2)] == [1, 2]


def test_another_owner_takes_over_when_the_lease_ran_out(
    story: LedgerStory, batch: BatchId
) -> None:
    story.begin(batch, owner=OWNER, lease=NO_TIME)
    attempt = story.begin(batch, owner=RIVAL)
    assert (attempt.token, attempt.owner) == (2, RIVAL)


def test_the_same_attempt_id_gives_the_same_attempt_while_it_is_the_newest(
    story: LedgerStory, batch: BatchId
) -> None:
    attempt = story.begin(batch, attempt_id="a" * 16, lease=NO_TIME)
    assert story.begin(batch, attempt_id="a" * 16) == attempt
    assert story.status(batch).lease_seconds_left > 50
    story.begin(batch, attempt_id="b" * 16)
    with pytest.raises(AttemptFenced, match="attempt number 2 has taken over"):
        story.begin(batch, attempt_id="a" * 16)


def test_an_attempt_id_belongs_to_one_batch(story: LedgerStory, batch: BatchId) -> None:
    other = story.planned((0, 10, 20))
    story.begin(batch, attempt_id="a" * 16)
    with pytest.raises(LedgerRefused, match=f"belongs to batch {batch}"):
        story.begin(other, attempt_id="a" * 16)


def test_a_new_attempt_begins_anew_after_a_verification(story: LedgerStory, batch: BatchId) -> None:
    old = story.begin(batch)
    story.verify(old)
    assert story.status(batch).state is BatchState.VERIFIED
    story.begin(batch)
    assert story.status(batch).state is BatchState.LANDING
    with pytest.raises(AttemptFenced):
        story.ledger.commit(old)


@pytest.mark.parametrize("state", ["committed", "published", "abandoned"])
def test_a_batch_that_is_over_takes_no_attempt(
    story: LedgerStory, batch: BatchId, state: str
) -> None:
    attempt = story.begin(batch)
    if state == "abandoned":
        closed = EndedGeneration(story.account().generation_id, FindingCode.TOPIC_RECREATED, "gone")
        story.change(LogChanges(closed=[closed]))
    else:
        story.verify(attempt)
        story.ledger.commit(attempt)
    if state == "published":
        story.ledger.mark_published(batch)
    for attempt_id in (AttemptId("e" * 16), attempt.attempt_id):
        assert not story.ledger.begin_attempt(
            batch, attempt_id=attempt_id, owner=OWNER, lease=MINUTE
        )
    assert story.status(batch).state is BatchState(state)
    assert [token for _, token, _, _ in attempts_of(story)] == [1]


# Every change by an older token is refused --------------------------------------------------------


def test_an_older_token_changes_nothing(story: LedgerStory, batch: BatchId) -> None:
    zombie = story.begin(batch)
    manifest = manifest_of(story.status(batch).plan, zombie)
    story.begin(batch)
    before = story.status(batch), attempts_of(story)
    with pytest.raises(AttemptFenced):
        story.ledger.renew_lease(zombie, MINUTE)
    with pytest.raises(AttemptFenced):
        story.ledger.record_application(zombie, "app-1")
    with pytest.raises(AttemptFenced):
        story.ledger.record_verified(zombie, manifest)
    with pytest.raises(AttemptFenced) as caught:
        story.ledger.commit(zombie)
    assert caught.value.args == (batch, 1, 2)
    after = story.status(batch)
    assert (after.state, after.newest_token, after.holder) == (before[0].state, 2, OWNER)
    assert attempts_of(story) == before[1]


def test_a_token_under_a_strange_attempt_id_changes_nothing(
    story: LedgerStory, batch: BatchId
) -> None:
    attempt = story.begin(batch)
    strange = replace(attempt, attempt_id=AttemptId("f" * 16))
    with pytest.raises(LedgerRefused, match="is not in the ledger"):
        story.ledger.renew_lease(strange, MINUTE)
    with pytest.raises(LedgerRefused):
        story.ledger.record_application(strange, "app-1")
    with pytest.raises(LedgerRefused):
        story.ledger.record_verified(strange, manifest_of(story.status(batch).plan, attempt))
    story.verify(attempt)
    with pytest.raises(LedgerRefused):
        story.ledger.commit(strange)
    assert story.status(batch).state is BatchState.VERIFIED


# Leases, application, failure ---------------------------------------------------------------------


def test_a_renewed_lease_holds_the_batch(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch, lease=NO_TIME)
    assert story.status(batch).holder is None
    story.ledger.renew_lease(attempt, MINUTE)
    status = story.status(batch)
    assert (status.holder, status.lease_seconds_left > 50) == (OWNER, True)


def test_a_heartbeat_after_the_own_commit_is_no_error(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch)
    story.verify(attempt)
    story.ledger.commit(attempt)
    story.ledger.renew_lease(attempt, MINUTE)
    story.ledger.mark_published(batch)
    story.ledger.renew_lease(attempt, MINUTE)


def test_the_application_is_kept_with_its_attempt(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch)
    story.ledger.record_application(attempt, "app-1")
    assert attempts_of(story) == [(attempt.attempt_id, 1, "app-1", None)]


def test_a_failure_is_kept_and_gives_the_lease_back(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch)
    story.ledger.record_failure(attempt, "executor lost")
    assert attempts_of(story) == [(attempt.attempt_id, 1, None, "failed: executor lost")]
    assert story.status(batch).holder is None
    assert story.begin(batch, owner=RIVAL).token == 2


def test_a_failure_of_an_older_attempt_leaves_the_newer_ones_lease_alone(
    story: LedgerStory, batch: BatchId
) -> None:
    zombie = story.begin(batch, owner=OWNER, lease=NO_TIME)
    story.begin(batch, owner=RIVAL)
    story.ledger.record_failure(zombie, "woke up late")
    assert story.status(batch).holder == RIVAL
    assert [each[3] for each in attempts_of(story)] == ["failed: woke up late", None]


def test_a_failure_after_the_commit_does_not_deny_it(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch)
    story.verify(attempt)
    story.ledger.commit(attempt)
    story.ledger.record_failure(attempt, "the answer was lost")
    assert attempts_of(story) == [(attempt.attempt_id, 1, None, "committed")]
    assert story.status(batch).committed_by == attempt.attempt_id


def test_a_failure_of_an_attempt_that_nobody_knows_is_no_error(story: LedgerStory) -> None:
    nobody = Attempt(AttemptId("f" * 16), BatchId("e" * 16), FencingToken(1), OWNER)
    story.ledger.record_failure(nobody, "whatever")


# Verification -------------------------------------------------------------------------------------


def test_what_was_verified_is_kept_word_for_word(story: LedgerStory, batch: BatchId) -> None:
    attempt = story.begin(batch)
    manifest = story.verify(attempt)
    [(attempt_id, kept, digest, hashes, of_file)] = story.ask(
        "SELECT attempt_id, manifest, sha256, hashes, file_sha256 FROM verification"
    )
    text, account = manifest.to_json(), decompressed(kept)
    assert (attempt_id, whole_text(account, json.loads(decompressed(hashes)))) == (
        attempt.attempt_id,
        text,
    )
    assert digest == sha256(account.encode()).digest()
    assert of_file == sha256(text.encode()).digest()


@pytest.mark.parametrize(
    ("manifest", "why"),
    [(compressed('{"format":"another"}'), "not the one whose hash"), (b"nothing", "can't be read")],
)
def test_a_proof_that_was_changed_commits_nothing(
    story: LedgerStory, batch: BatchId, manifest: bytes, why: str
) -> None:
    attempt = story.begin(batch)
    digest = sha256(story.verify(attempt).to_json().encode()).digest()
    with story.raw() as hand:
        hand.execute(
            "INSERT INTO verification (batch_id, attempt_id, isolation, manifest, sha256,"
            " file_sha256)"
            " VALUES (%s, %s, 'read_committed', %s, %s, %s)",
            [batch, attempt.attempt_id, manifest, digest, digest],
        )
        hand.execute(
            "UPDATE batch SET verification_id = (SELECT max(verification_id) FROM verification)"
        )
    with pytest.raises(LedgerRefused, match=why):
        story.ledger.commit(attempt)
    assert story.status(batch).state is BatchState.VERIFIED


def test_the_newest_verification_of_an_attempt_is_what_it_commits(
    story: LedgerStory, batch: BatchId
) -> None:
    attempt = story.begin(batch)
    story.verify(attempt, bytes_per_record=10)
    again = story.verify(attempt, bytes_per_record=2000)
    story.ledger.commit(attempt)
    assert story.manifests() == [again]
    digests = [each.manifest_sha256 for each in story.ledger.directories(FEED)]
    assert digests == [sha256(again.to_json().encode()).digest()]
    assert story.ask("SELECT count(*) FROM verification") == [(2,)]


def test_a_manifest_of_another_attempt_is_refused(story: LedgerStory, batch: BatchId) -> None:
    old = story.begin(batch)
    manifest = manifest_of(story.status(batch).plan, old)
    new = story.begin(batch)
    with pytest.raises(LedgerRefused, match=f"of attempt {old.attempt_id}, token 1, not of"):
        story.ledger.record_verified(new, manifest)
    assert story.status(batch).state is BatchState.LANDING


# Two at once --------------------------------------------------------------------------------------


def test_attempts_that_begin_together_get_different_tokens(
    story: LedgerStory, batch: BatchId
) -> None:
    gate = threading.Barrier(4)
    tokens: list[int] = []

    def begin() -> None:
        beside = story.another()
        beside.ledger.batch(batch)
        gate.wait(20)
        tokens.append(beside.begin(batch).token)
        beside.ledger.close()

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(tokens) == [1, 2, 3, 4]
    assert story.status(batch).newest_token == 4
