"""The commit protocol keeps its promises in every order of its effects, and needs all its rules.

The numbers are those of the invariants in docs/design.md.
"""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain

import pytest

from tallystick import errors
from tallystick.domain.batches.states import TRANSITIONS, BatchState, CommitAnswer
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.planning import PlanningSession
from tallystick.ports.broker import BrokerView
from tallystick.ports.file_store import FileStore
from tallystick.ports.spark_runner import SparkRunner
from tests.protocol.exploration import Exploration, explored, stuck, unsettled
from tests.protocol.model import Log, Look, Rules, is_at_rest, is_settled

SOUND = Rules()

# The rule left out, processes that stand still meanwhile, the promise that breaks.
BROKEN_PROTOCOLS = [
    ("begins_only_unfinished", ("planner",), "committed twice"),
    ("compares_token", ("planner",), "committed data is gone"),
    ("compares_state", (), "an abandoned batch committed"),
    ("compares_own_row", ("planner", "sweeper"), "committed twice"),
    ("compares_own_row", ("planner",), "committed data is gone"),
    ("compares_own_row", (), "an offset is both committed and lost"),
    ("compares_claims", (), "an offset is both committed and lost"),
    ("commits_before_rename", (), "readers see uncommitted data"),
    ("keeps_staging_when_unknown", (), "committed data is gone"),
    ("renames_exclusively", (), "committed data is gone"),
    ("renames_before_looking", (), "PublishedDataMissing although the data is there"),
    ("believes_target_manifest", (), "TargetOccupied without a foreign directory"),
    ("marks_after_rename", (), "published, but readers don't see it"),
    ("waits_for_dead_token", (), "staging of the live newest attempt deleted"),
    ("asks_for_commit", (), "committed data is gone"),
    ("asks_after_death", (), "committed data is gone"),
    ("keeps_held_claims", (), "offsets called lost that files hold"),
    ("gives_up_under_new_token", ("planner", "sweeper"), "committed data is gone"),
    ("keeps_only_copies", (), "the only copy deleted"),
]

# Nothing of the log is asked by who publishes and who sweeps.
ELSEWHERE = ("finisher", "sweeper")
BROKEN_WHEN_CUT = [
    ("asks_log_before_read", "rows of another log are committed"),
    ("asks_log_after_read", "rows of another log are committed"),
    ("commits_without_witness", "a cut that nobody can notice"),
]
# A look touches no batch: one attempt shows all of it.
BROKEN_LOOKS = ("looks_under_lock", "records_each_look", "records_what_it_shows")


@pytest.fixture(scope="module")
def everything() -> Exploration:
    """Every state of two attempts, none left out."""
    return explored(SOUND)


def test_every_promise_holds_in_every_state(everything: Exploration) -> None:
    # Invariants 1, 2, 3, 4 and 8 of docs/design.md.
    assert everything.violation is None, str(everything.violation)
    assert len(everything.states) > 100_000


def test_a_foreign_target_is_never_touched() -> None:
    found = explored(SOUND, is_target_foreign=True)

    assert found.violation is None, str(found.violation)
    assert any(is_settled(state) for state in found.states)


def test_after_a_crash_of_everybody_a_run_without_faults_ends_well(everything: Exploration) -> None:
    # 8: published, with exactly one copy; or abandoned, and readers see nothing.
    assert unsettled(filter(is_at_rest, everything.states), SOUND) is None


def test_nobody_ever_waits_for_a_process_that_stands_still(everything: Exploration) -> None:
    # Invariant 8 of docs/design.md.
    assert stuck(everything.states, SOUND) is None


@pytest.mark.parametrize(("rule", "standing_still", "promise"), BROKEN_PROTOCOLS)
def test_a_rule_left_out_breaks_a_promise(
    rule: str, standing_still: tuple[str, ...], promise: str
) -> None:
    found = explored(replace(SOUND, **{rule: False}), without=standing_still)

    assert found.violation is not None
    assert found.violation.promise == promise, str(found.violation)


def test_an_overwriting_finisher_destroys_a_foreign_directory() -> None:
    found = explored(replace(SOUND, renames_exclusively=False), is_target_foreign=True)

    assert found.violation is not None
    assert found.violation.promise == "a foreign directory was touched"


@pytest.fixture(scope="module")
def cut_logs() -> Exploration:
    """Every state in a world where the log is cut and grows again between any two steps."""
    return explored(SOUND, has_cuts=True, without=ELSEWHERE)


def test_every_promise_holds_when_the_log_is_cut_between_any_two_steps(
    cut_logs: Exploration,
) -> None:
    # 10: what is committed is the planned log's, and a cut is told by the next look.
    assert cut_logs.violation is None, str(cut_logs.violation)
    assert any(state.committed and state.log is Log.CUT_BELOW for state in cut_logs.states)
    assert any(state.committed and state.log is Log.CUT_ABOVE for state in cut_logs.states)


def test_after_a_cut_a_run_without_faults_ends_well(cut_logs: Exploration) -> None:
    assert unsettled(filter(is_at_rest, cut_logs.states), SOUND) is None


@pytest.mark.parametrize(("rule", "promise"), BROKEN_WHEN_CUT)
def test_a_question_to_the_log_left_out_breaks_a_promise(rule: str, promise: str) -> None:
    found = explored(replace(SOUND, **{rule: False}), has_cuts=True, without=ELSEWHERE)

    assert found.violation is not None
    assert found.violation.promise == promise, str(found.violation)


def test_what_a_look_has_seen_is_noticed_when_it_is_cut() -> None:
    found = explored(SOUND, attempts=1, has_cuts=True, has_looks=True, without=ELSEWHERE)

    assert found.violation is None, str(found.violation)
    later = [state for state in found.states if state.log is Log.CUT_LATER]
    assert any(state.look is Look.ON_RECORD for state in later)
    assert unsettled(filter(is_at_rest, found.states), SOUND) is None


@pytest.mark.parametrize("rule", BROKEN_LOOKS)
def test_a_look_that_is_dropped_breaks_a_promise(rule: str) -> None:
    rules = replace(SOUND, **{rule: False})
    found = explored(rules, attempts=1, has_cuts=True, has_looks=True, without=ELSEWHERE)

    assert found.violation is not None
    assert found.violation.promise == "a cut that nobody can notice", str(found.violation)


def test_every_rule_has_a_row() -> None:
    rows = {rule for rule, _, _ in BROKEN_PROTOCOLS} | {rule for rule, _ in BROKEN_WHEN_CUT}
    assert rows | {*BROKEN_LOOKS} == {each.name for each in fields(Rules)}


def test_without_a_finisher_a_crash_after_the_commit_is_never_mended(
    everything: Exploration,
) -> None:
    left = unsettled(filter(is_at_rest, everything.states), SOUND, without={"finisher"})

    assert left is not None
    assert left.batch is BatchState.COMMITTED


def test_every_step_is_a_method_of_a_port(everything: Exploration) -> None:
    ports = (Ledger, PlanningSession, FileStore, SparkRunner, BrokerView)
    names = {name for port in ports for name in dir(port) if not name.startswith("_")}

    assert {method for method, _ in everything.outcomes} - {"crash"} <= names


def test_every_error_of_the_model_is_one_of_ours(everything: Exploration) -> None:
    answers = {answer.name for answer in CommitAnswer}
    named = {outcome for _, outcome in everything.outcomes if outcome[0].isupper()} - {"None"}

    assert named - answers
    assert all(hasattr(errors, name) for name in named - answers)


def test_batches_move_as_the_table_says(everything: Exploration) -> None:
    taken = everything.batch_steps

    assert taken == {(before, after) for before, after in TRANSITIONS if before is not after}
    assert set(chain.from_iterable(taken)) == set(chain.from_iterable(TRANSITIONS))
