"""The schema keeps the promises by itself, whoever writes to it; its states are the domain's."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from itertools import product

import psycopg
import pytest
from psycopg import errors

from tallystick.domain.batches.states import TRANSITIONS, BatchState, HoleClass, RangeState
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.verdicts import FindingState, Verdict
from tallystick.ledger.statements import migrations
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, NO_TIME, LedgerStory, finding_of
from tests.support.report_documents import a_document

WANTED = len(migrations())
RANGE_STEPS = {
    ("committed", "retracted"),
    ("claimed", "committed"),
    ("claimed", "lost"),
    ("claimed", "released"),
    ("claimed", "unreadable"),
    ("unreadable", "released"),
    ("unreadable", "lost"),
}
GENERATION_STEPS = {("open", "stopped"), ("open", "closed"), ("stopped", "closed")}
FINDING_STEPS = {
    ("open", "superseded"),
    ("open", "remedied"),
    ("open", "waived"),
    ("waived", "open"),
    ("waived", "superseded"),
    ("waived", "remedied"),
}


@pytest.fixture
def hand(story: LedgerStory) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Somebody who writes to the ledger by hand, as its owner."""
    with story.raw() as connection:
        yield connection


def refused(hand: psycopg.Connection[tuple[object, ...]], statement: str) -> str:
    """Why the schema refuses the statement."""
    with pytest.raises(psycopg.Error) as caught, hand.transaction():
        hand.execute(statement.encode())
    return str(caught.value)


def allowed(hand: psycopg.Connection[tuple[object, ...]], statement: str) -> bool:
    """If the schema lets the statement pass; it is undone in any case."""
    try:
        with hand.transaction(force_rollback=True):
            hand.execute(statement.encode())
    except errors.Error as error:
        if error.sqlstate not in ("TS001", "TS002"):
            raise
        return False
    return True


# States -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type_name", "states"),
    [
        ("batch_state", BatchState),
        ("range_state", RangeState),
        ("generation_state", GenerationState),
        ("hole_class", HoleClass),
        ("verdict", Verdict),
        ("finding_state", FindingState),
    ],
)
def test_the_schemas_enumerations_are_the_domains(
    story: LedgerStory, type_name: str, states: type[BatchState]
) -> None:
    labels = story.ask(
        "SELECT enumlabel FROM pg_enum JOIN pg_type ON pg_type.oid = enumtypid"
        f" WHERE typname = '{type_name}' ORDER BY enumsortorder"
    )
    assert [label for (label,) in labels] == [each.value for each in states]


@pytest.mark.parametrize(
    ("type_name", "steps"),
    [
        ("batch_state", {(a.value, b.value) for a, b in TRANSITIONS}),
        ("range_state", RANGE_STEPS),
        ("generation_state", GENERATION_STEPS),
        ("finding_state", FINDING_STEPS),
    ],
)
def test_the_schemas_comments_show_the_steps(
    story: LedgerStory, type_name: str, steps: set[tuple[str, str]]
) -> None:
    ((comment,),) = story.ask(f"SELECT obj_description('{type_name}'::regtype, 'pg_type')")
    assert set(re.findall(r"^(\w+) -> (\w+)$", comment, re.MULTILINE)) == steps


def test_a_batch_takes_the_domains_steps_and_no_other(
    story: LedgerStory, hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    story.open({0: (0, 100)})
    # What a state needs beside it is tested elsewhere: here only the step itself may be refused.
    for (constraint,) in story.ask(
        "SELECT conname FROM pg_constraint WHERE conrelid = 'batch'::regclass AND contype = 'c'"
    ):
        hand.execute(f"ALTER TABLE batch DROP CONSTRAINT {constraint}".encode())
    taken = set()
    for before, after in product(BatchState, BatchState):
        batch_id = bring_to(story, hand, before)
        if allowed(hand, f"UPDATE batch SET state = '{after}' WHERE batch_id = '{batch_id}'"):
            taken.add((before, after))
    assert taken == TRANSITIONS


def bring_to(
    story: LedgerStory, hand: psycopg.Connection[tuple[object, ...]], state: BatchState
) -> str:
    """A batch without ranges in this state, by the shortest legal way."""
    batch_id = story.planned(lease=NO_TIME)
    if state is BatchState.ABANDONED:
        hand.execute(
            "UPDATE batch SET state = 'abandoned', abandoned_at = now() WHERE batch_id = %s",
            [batch_id],
        )
    if state in (BatchState.PLANNED, BatchState.ABANDONED):
        return batch_id
    attempt = story.begin(batch_id, attempt_id=f"a{batch_id}")
    if state is BatchState.LANDING:
        return batch_id
    story.verify(attempt)
    if state.is_committed:
        story.ledger.commit(attempt)
    if state is BatchState.PUBLISHED:
        story.ledger.mark_published(batch_id)
    return batch_id


def test_a_range_takes_its_steps_and_no_other(
    story: LedgerStory, hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    story.open({0: (0, 1000)})
    story.committed((0, 0, 10))
    story.planned((0, 10, 20))
    story.planned((0, 20, 30))
    story.planned((0, 30, 40))
    story.planned((0, 40, 50))
    set_to = {
        "claimed": "state = 'claimed', loss_code = NULL, record_count = NULL, hole_count = NULL",
        "committed": "state = 'committed', record_count = 10, hole_count = 0, loss_code = NULL",
        "lost": "state = 'lost', loss_code = 'A1', record_count = NULL, hole_count = NULL",
        "released": "state = 'released', loss_code = NULL, record_count = NULL, hole_count = NULL",
        "retracted": "state = 'retracted'",
        "unreadable": "state = 'unreadable', loss_code = NULL, record_count = NULL",
    }
    hand.execute(f"UPDATE offset_range SET {set_to['lost']} WHERE lower(offsets) = 20".encode())
    hand.execute(f"UPDATE offset_range SET {set_to['released']} WHERE lower(offsets) = 30".encode())
    aside = f"UPDATE offset_range SET {set_to['unreadable']} WHERE lower(offsets) = 40"
    hand.execute(aside.encode())
    at = {"committed": 0, "claimed": 10, "lost": 20, "released": 30, "unreadable": 40}
    change = "UPDATE offset_range SET {} WHERE lower(offsets) = {}"
    taken = {
        (before, after)
        for before, after in product(at, set_to)
        if before != after and allowed(hand, change.format(set_to[after], at[before]))
    }
    assert taken == RANGE_STEPS


def test_a_generation_takes_its_steps_and_no_other(
    story: LedgerStory, hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    story.open({0: (0, 10), 1: (0, 10), 2: (0, 10)})
    end = "ended_at = now(), ending_code = 'A5', ending_reason = 'by hand'"
    live = "ended_at = NULL, ending_code = NULL, ending_reason = NULL"
    for partition, state in ((1, "stopped"), (2, "closed")):
        hand.execute(
            f"UPDATE generation SET state = '{state}', {end} WHERE partition = {partition}".encode()
        )
    at = {"open": 0, "stopped": 1, "closed": 2}
    taken = {
        (before, after)
        for before, after in product(at, at)
        if before != after
        and allowed(
            hand,
            f"UPDATE generation SET state = '{after}', {live if after == 'open' else end}"
            f" WHERE partition = {at[before]}",
        )
    }
    assert taken == GENERATION_STEPS


def test_a_finding_takes_its_steps_and_no_other(
    story: LedgerStory, hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    story.open({0: (0, 100)})
    story.ledger.record_findings(FEED, [finding_of(start) for start in range(4)])
    closed = ", closed_at = now(), closed_by = 'by hand'"
    set_to = {
        each: f"state = '{each}'" + (closed if each is FindingState.REMEDIED else "")
        for each in FindingState
    }
    at = dict(enumerate(FindingState))
    for start, before in at.items():
        if before is not FindingState.OPEN:
            hand.execute(
                f"UPDATE finding SET {set_to[before]} WHERE from_offset = {start}".encode()
            )
    taken = {
        (before.value, after.value)
        for (start, before), after in product(at.items(), FindingState)
        if before is not after
        and allowed(hand, f"UPDATE finding SET {set_to[after]} WHERE from_offset = {start}")
    }
    assert taken == FINDING_STEPS


# What nobody can write ----------------------------------------------------------------------------

CLAIM = "INSERT INTO offset_range (generation_id, offsets, state, batch_id) VALUES "
LOSS = "INSERT INTO offset_range (generation_id, offsets, state, loss_code) VALUES "


@pytest.fixture(scope="module")
def filled(ledger_server: LedgerServer) -> Iterator[LedgerStory]:
    """Generation 1: [0, 10) committed with a hole, [20, 30) claimed, [40, 50) lost by hand.

    One for all tests of this section: what they try is refused, so nothing changes.
    """
    database = ledger_server.fresh()
    story = LedgerStory(ledger_server.dsn(database))
    story.open({0: (0, 1000), 1: (5, 1000)})
    attempt = story.begin(story.planned((0, 0, 10)))
    story.verify(attempt, holes={0: {HoleClass.CONTROL: OffsetRuns.of([(4, 5)])}})
    story.ledger.commit(attempt)
    story.planned((0, 20, 30))
    story.ledger.record_findings(FEED, [finding_of()])
    story.ledger.store_report(a_document())
    with story.raw() as hand:
        hand.execute((LOSS + "(1, '[40,50)', 'lost', 'A1')").encode())
    yield story
    story.ledger.close()
    ledger_server.drop(database)


@pytest.fixture
def by_hand(filled: LedgerStory) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Somebody who writes to the filled ledger by hand, as its owner."""
    with filled.raw() as connection:
        yield connection


@pytest.mark.parametrize("taken", ["[9,12)", "[0,10)", "[3,4)", "[29,41)", "[49,60)", "[0,1000)"])
@pytest.mark.parametrize("state", ["claimed", "lost"])
def test_an_overlap_is_refused_whoever_writes_it(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]], taken: str, state: str
) -> None:
    batch = filled.planned()
    beginning, reason = (LOSS, "A1") if state == "lost" else (CLAIM, batch)
    said = refused(by_hand, beginning + f"(1, '{taken}', '{state}', '{reason}')")
    assert "offset_range_no_overlap" in said


def test_an_overlap_is_refused_when_a_range_is_changed_to_make_it(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    assert "may only shrink" in refused(
        by_hand, "UPDATE offset_range SET offsets = '[9,30)' WHERE lower(offsets) = 20"
    )
    assert "never changes" in refused(
        by_hand, "UPDATE offset_range SET offsets = '[0,15)' WHERE lower(offsets) = 0"
    )


def test_an_overlap_is_refused_between_two_who_write_at_once(filled: LedgerStory) -> None:
    batches = [filled.planned(), filled.planned()]
    refusals: list[psycopg.Error] = []
    gate = threading.Barrier(2)

    def write(batch_id: str) -> None:
        claim = CLAIM + f"(1, '[2000,2100)', 'claimed', '{batch_id}')"
        with filled.raw() as connection:
            gate.wait(20)
            try:
                connection.execute(claim.encode())
            except psycopg.Error as error:
                refusals.append(error)

    threads = [threading.Thread(target=write, args=(each,)) for each in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(refusals) == 1
    assert isinstance(refusals[0], (errors.ExclusionViolation, errors.DeadlockDetected))


def test_the_same_offsets_of_another_generation_are_no_overlap(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    by_hand.execute((LOSS + "(2, '[20,30)', 'lost', 'A1')").encode())
    assert [str(offsets) for _, offsets, _ in filled.ledger.lost(FEED)] == [
        "orders-0 [40, 50)",
        "orders-1 [20, 30)",
    ]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        (LOSS + "(1, 'empty', 'lost', 'A1')", "offset_range_is_one"),
        (LOSS + "(1, '[7,7)', 'lost', 'A1')", "offset_range_is_one"),
        (LOSS + "(1, '[60,)', 'lost', 'A1')", "offset_range_is_one"),
        (LOSS + "(1, '(,60)', 'lost', 'A1')", "offset_range_is_one"),
        (LOSS + "(1, '[-5,-1)', 'lost', 'A1')", "generation 1 begins at offset 0"),
        (LOSS + "(2, '[0,5)', 'lost', 'A1')", "generation 2 begins at offset 5"),
        (LOSS + "(9, '[0,5)', 'lost', 'A1')", "foreign key"),
        (LOSS + "(1, '[60,70)', 'lost', NULL)", "offset_range_loss_has_code"),
        (LOSS + "(1, '[60,70)', 'claimed', NULL)", "offset_range_claim_has_batch"),
        (LOSS + "(1, '[60,70)', 'committed', NULL)", "claimed before it is committed"),
        (LOSS + "(1, '[0,5)', 'committed', NULL)", "offset_range_all_accounted_for"),
        (
            "UPDATE offset_range SET state = 'committed', record_count = 9, hole_count = 0"
            " WHERE state = 'claimed'",
            "offset_range_all_accounted_for",
        ),
        (
            "UPDATE offset_range SET state = 'committed' WHERE state = 'claimed'",
            "offset_range_all_accounted_for",
        ),
        ("UPDATE offset_range SET state = 'claimed' WHERE state = 'committed'", "never changes"),
        ("UPDATE offset_range SET state = 'released' WHERE state = 'lost'", "never changes"),
        ("UPDATE generation SET frontier = 9 WHERE generation_id = 1", "never moves back"),
        ("UPDATE generation SET frontier = 11 WHERE generation_id = 1", "not all between"),
        ("UPDATE generation SET frontier = 30 WHERE generation_id = 1", "not all between"),
        ("UPDATE generation SET last_seen_until = 1", "last_seen_until never moves back"),
        ("UPDATE generation SET topic_id = 'another'", "its identity never changes"),
        (
            "INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal,"
            " first_offset, frontier, last_seen_until, opening_reason)"
            " SELECT feed, topic, partition, cluster_id, topic_id, 2, 0, 0, 0, '' FROM generation",
            "no finding says that the log was cut",
        ),
        (
            "INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal,"
            " first_offset, frontier, last_seen_until, opening_reason)"
            " SELECT feed, topic, partition, cluster_id, 'new', 2, 0, 0, 0, '' FROM generation",
            "generation_open_once",
        ),
        (
            "INSERT INTO generation (feed, topic, partition, cluster_id, topic_id, ordinal,"
            " first_offset, frontier, last_seen_until, opening_reason)"
            " VALUES ('orders', 'orders', 7, 'c', 't', 1, 0, 5, 0, '')",
            "the frontier at its first offset",
        ),
        ("UPDATE batch SET newest_token = -1", "tokens only grow"),
        ("UPDATE batch SET committed_by = NULL", "its commit never changes"),
        ("UPDATE batch SET label = now()", "its identity never changes"),
        ("UPDATE batch SET window_from = '2026-01-01Z', window_until = now()", "its identity"),
        ("UPDATE attempt SET token = 9", "its identity never changes"),
        ("UPDATE attempt SET outcome = 'failed: by hand'", "its outcome never changes"),
        ("UPDATE tail_anchor SET record_offset = 3", "only moves forward"),
        ("UPDATE tail_anchor SET record_offset = 9", "only moves forward"),
        ("UPDATE finding SET cause = 'another'", "only its confirmation and its state change"),
        ("UPDATE finding SET state = 'superseded', verdict = 'UNKNOWN'", "only its confirmation"),
        (
            "INSERT INTO verification (batch_id, attempt_id, isolation, manifest, sha256,"
            " file_sha256)"
            " SELECT batch_id, attempt_id, 'read_committed', '{}', '', sha256('') FROM attempt",
            "verification_sha256_check",
        ),
        (
            "UPDATE batch SET state = 'abandoned', abandoned_at = now() WHERE state = 'planned';"
            " SET CONSTRAINTS ALL IMMEDIATE",
            "of its ranges are still claimed",
        ),
    ],
)
def test_the_schema_refuses(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]], statement: str, why: str
) -> None:
    assert re.search(why, refused(by_hand, statement))


APPEND_ONLY = (
    "feed",
    "feed_retirement",
    "broker_snapshot",
    "plan",
    "plan_batch",
    "verification",
    "file",
    "stored_anew",
    "moved_batch",
    "replaced_file",
    "file_retraction",
    "commit_link",
    "waiver",
    "waiver_ending",
    "file_fingerprint",
    "batch_check",
    "report",
)
KEPT = (
    *("generation", "batch", "attempt", "offset_range", "hole", "folded_holes", "tail_anchor"),
    "finding",
    "waiver_request",
)


@pytest.mark.parametrize("table", [*APPEND_ONLY, *KEPT])
def test_no_row_is_ever_removed(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]], table: str
) -> None:
    assert "DELETE refused" in refused(by_hand, f"DELETE FROM {table}")
    assert "refused" in refused(by_hand, f"TRUNCATE {table} CASCADE")


@pytest.mark.parametrize("table", APPEND_ONLY)
def test_evidence_never_changes(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]], table: str
) -> None:
    ((column,),) = filled.ask(
        "SELECT column_name FROM information_schema.columns"
        f" WHERE table_name = '{table}' AND is_identity = 'NO' ORDER BY ordinal_position LIMIT 1"
    )
    said = refused(by_hand, f"UPDATE {table} SET {column} = {column}")
    assert f"UPDATE refused: {table} is evidence" in said


def test_every_table_is_guarded_against_removal(story: LedgerStory) -> None:
    tables = story.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert {name for (name,) in tables} == {
        *APPEND_ONLY,
        *KEPT,
        *("schema_version", "completeness", "hour_look", "directory_look", "told"),
    }


def test_every_table_and_type_says_what_it_is(story: LedgerStory) -> None:
    silent = story.ask(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        " AND relkind = 'r' AND relname <> 'schema_version'"
        " AND obj_description(oid, 'pg_class') IS NULL"
        " UNION SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace"
        " AND typtype = 'e' AND obj_description(oid, 'pg_type') IS NULL"
    )
    assert silent == []


def test_a_batch_commits_by_its_own_attempt_only(
    filled: LedgerStory, by_hand: psycopg.Connection[tuple[object, ...]]
) -> None:
    attempt = filled.verified((0, 60, 70))
    foreign = filled.begin(filled.planned((0, 70, 80)))
    said = refused(
        by_hand,
        f"""UPDATE batch SET state = 'committed', committed_by = '{foreign.attempt_id}',
              commit_number = 99, committed_at = now(), record_count = 0, hole_count = 0,
              byte_count = 0 WHERE batch_id = '{attempt.batch_id}'""",
    )
    assert "batch_committed_by_own_attempt" in said
