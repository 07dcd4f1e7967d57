"""Breadth first through every state of the protocol model, so a counterexample is a shortest one.

Decides nothing about the protocol: `model` holds its promises, `steps` its steps.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, KeysView, Mapping
from dataclasses import dataclass, field

from tallystick.domain.batches.states import BatchState
from tests.protocol.model import (
    Landing,
    Rules,
    Staging,
    State,
    broken_promise,
    first_state,
    is_settled,
)
from tests.protocol.steps import Step, steps_from


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that does not hold, and a shortest way to see it."""

    promise: str
    trace: tuple[str, ...]

    def __str__(self) -> str:
        return "\n  ".join((self.promise, *self.trace))


@dataclass(slots=True)
class Exploration:
    """Everything that can happen, up to the first violation."""

    came_from: dict[State, State | None] = field(default_factory=dict)
    """Every state seen, with the one that first led there."""
    step_count: int = 0
    outcomes: set[tuple[str, str]] = field(default_factory=set)
    """Method and outcome of every step."""
    batch_steps: set[tuple[BatchState, BatchState]] = field(default_factory=set)
    violation: Violation | None = None

    @property
    def states(self) -> KeysView[State]:
        """Every state seen."""
        return self.came_from.keys()

    def trace_to(self, state: State, rules: Rules, attempts: int) -> tuple[str, ...]:
        """The steps of a shortest way to the state."""
        steps: list[str] = []
        while (before := self.came_from[state]) is not None:
            possible = steps_from(before, rules, attempts)
            steps.append(next(str(step) for step in possible if step.after == state))
            state = before
        return tuple(reversed(steps))


def explored(
    rules: Rules,
    *,
    attempts: int = 2,
    is_target_foreign: bool = False,
    has_cuts: bool = False,
    has_looks: bool = False,
    without: Collection[str] = (),
) -> Exploration:
    """All states that the rules allow, or the way to the first broken promise.

    `without` names processes that take no step, so that a trace shows the others' doing.
    """
    found = Exploration()
    first = first_state(
        attempts=attempts,
        is_target_foreign=is_target_foreign,
        has_cuts=has_cuts,
        has_looks=has_looks,
    )
    found.came_from[first] = None
    queue = deque([first])
    while queue:
        state = queue.popleft()
        for step in steps_from(state, rules, attempts):
            if step.who in without:
                continue
            found.step_count += 1
            after = step.after
            found.outcomes.add((step.method, step.outcome))
            if after.batch is not state.batch:
                found.batch_steps.add((state.batch, after.batch))
            promise = step.broken
            if after not in found.came_from:
                found.came_from[after] = state
                queue.append(after)
                promise = promise or broken_promise(after)
            if promise:
                way = found.trace_to(state, rules, attempts)
                found.violation = Violation(promise, (*way, str(step)))
                return found
    return found


def unsettled(
    states: Iterable[State], rules: Rules, *, without: Collection[str] = ()
) -> State | None:
    """A state in which a run without further faults ends badly, or never; None if there is none.

    Starts from every given state, with all processes as they stand and one more attempt to spare.
    The sweeper may come between at any time, but nothing may wait for it: without an end that is
    well there must be a step of somebody else, and such steps never lead back to where they began.
    """
    queue = deque(_with_attempt_to_spare(state) for state in states)
    following: dict[State, tuple[State, ...]] = {}
    while queue:
        state = queue.popleft()
        if state in following:
            continue
        calm = () if is_settled(state) else _calm_steps(state, rules, without)
        queue.extend(step.after for step in calm if step.after not in following)
        following[state] = tuple(step.after for step in calm if step.who != "sweeper")
        if not following[state] and not is_settled(state):
            return state
    return _member_of_a_cycle(following)


def stuck(states: Iterable[State], rules: Rules) -> State | None:
    """A state in which nobody but the sweeper can do anything, and the story has not ended well."""
    return next(
        (
            state
            for state in map(_with_attempt_to_spare, states)
            if not is_settled(state) and not _calm_steps(state, rules, without={"sweeper"})
        ),
        None,
    )


def _with_attempt_to_spare(state: State) -> State:
    landings = (*state.landings, Landing.ON_OLD_LOG) if state.has_cuts else ()
    return state._replace(staging=(*state.staging, Staging.ABSENT), landings=landings)


def _calm_steps(state: State, rules: Rules, without: Collection[str]) -> tuple[Step, ...]:
    possible = steps_from(state, rules, len(state.staging))
    return tuple(each for each in possible if not each.is_fault and each.who not in without)


def _member_of_a_cycle(following: Mapping[State, tuple[State, ...]]) -> State | None:
    arrivals = Counter(after for afters in following.values() for after in afters)
    free = [state for state in following if not arrivals[state]]
    while free:
        for after in following[free.pop()]:
            arrivals[after] -= 1
            if not arrivals[after]:
                free.append(after)
    return next((state for state, count in arrivals.items() if count), None)
