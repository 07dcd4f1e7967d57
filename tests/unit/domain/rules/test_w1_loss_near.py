"""Near losses as a table: what warns, and the nearest facts that do not. Numbers are invariants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.outlook import Outlook, time_to_loss
from tallystick.domain.logs.snapshot import BatchHead, PartitionBounds, PastBounds
from tallystick.domain.rules.w1_loss_near import losses_near
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, NOON, a_snapshot, an_account, bounds, by_partition

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOON_MS = int(NOON.timestamp() * 1000)


def ms(length: timedelta) -> int:
    return length // timedelta(milliseconds=1)


@dataclass(frozen=True)
class Facts:
    """One partition: ten unread batches of one record of 100 bytes, unless a row says otherwise."""

    account: GenerationAccount | None = an_account(frontier=5)  # noqa: RUF009
    now: PartitionBounds | None = bounds(0, 15)  # noqa: RUF009
    age: timedelta | None = 2 * HOUR
    """Of the batch at the frontier; None where its producer gave no time."""
    has_head: bool = True
    retention: timedelta | None = 7 * DAY
    size: int | None = None
    grown: int = 0
    """In the last hour; 0 without an earlier look."""
    warn: timedelta = 6 * HOUR
    period: timedelta = HOUR

    def findings(self) -> str:
        head = BatchHead(5, 6, None if self.age is None else NOON_MS - ms(self.age), 100, None)
        snapshot = replace(
            a_snapshot({0: self.now} if self.now else {}),
            retention_ms=None if self.retention is None else ms(self.retention),
            retention_bytes=self.size,
        )
        past = (PastBounds(NOON - HOUR, 15 - self.grown, 15 - self.grown),) if self.grown else ()
        outlook = Outlook({0: head} if self.has_head else {}, past={0: past})
        found = losses_near(
            FEED,
            by_partition(self.account) if self.account else {},
            snapshot,
            outlook,
            now=NOON,
            warn=self.warn,
            run_period=self.period,
        )
        assert all(each.verdict is Verdict.SUSPECTED for each in found)
        return " ".join(f"[{each.from_offset}, {each.until_offset})" for each in found)


NEAR = "[5, 15)"
ROWS: list[tuple[str, Facts, str]] = [
    # By age: kept for 7 days, told 6 hours before.
    ("young: two hours of seven days", Facts(), ""),
    ("just before the warning: the bound is excluded", Facts(age=7 * DAY - 6 * HOUR), ""),
    ("near: five hours are left", Facts(age=7 * DAY - 5 * HOUR), NEAR),
    ("over: it may go at any moment", Facts(age=8 * DAY), NEAR),
    ("near, a slow feed: two runs take two days", Facts(age=6 * DAY, period=DAY), NEAR),
    ("near, an hourly feed: two runs take two hours", Facts(age=6 * DAY), ""),
    ("kept for ever: nothing limits it", Facts(age=900 * DAY, retention=None), ""),
    ("no time given: nobody can say how old it is", Facts(age=None), ""),
    ("from the future: it will be kept for long", Facts(age=-900 * DAY), ""),
    # 2: kept for less than the warning.
    ("short-lived and new: as young as can be", Facts(age=timedelta(), retention=HOUR), ""),
    ("short-lived, half way: the bound is excluded", Facts(age=HOUR / 2, retention=HOUR), ""),
    ("short-lived and old: less than half is left", Facts(age=HOUR * 0.6, retention=HOUR), NEAR),
    # 1: nothing unread.
    ("all landed: nothing to lose", Facts(now=bounds(0, 5), age=8 * DAY), ""),
    ("empty: nothing there", Facts(now=bounds(5, 5), age=8 * DAY), ""),
    ("no batch there: nothing there to be lost", Facts(has_head=False, age=8 * DAY), ""),
    ("unknown to the ledger: another rule's business", Facts(account=None, age=8 * DAY), ""),
    ("without a leader: another rule's business", Facts(now=None, age=8 * DAY), ""),
    (
        "stopped: nobody may land it now",
        Facts(account=an_account(frontier=5, state=GenerationState.STOPPED), age=8 * DAY),
        "",
    ),
    # By size: 1,000 bytes are unread, and so many more come in an hour.
    ("room for days: 99,000 bytes at 1,000 an hour", Facts(size=100_000, grown=10), ""),
    ("nearly full: 500 bytes at 1,000 an hour", Facts(size=1_500, grown=10), NEAR),
    ("nearly full, but idle: nothing comes that would push it out", Facts(size=1_500), ""),
    ("nearly full, slowly: nine hours are left", Facts(size=1_999, grown=1), ""),
    ("half full: the bound is excluded", Facts(size=2_000, grown=10), ""),
    ("past its size: the next segment pushes it out", Facts(size=900, grown=10), NEAR),
    ("a burst into an empty log: three quarters are free", Facts(size=4_000, grown=10), ""),
]


@pytest.mark.parametrize(
    ("facts", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_which_losses_are_near(facts: Facts, expected: str) -> None:
    assert facts.findings() == expected


def test_the_smaller_time_counts() -> None:
    head = BatchHead(5, 6, NOON_MS, 100, None)
    outlook = Outlook({0: head}, past={0: [PastBounds(NOON - HOUR, 5, 5)]})
    snapshot = replace(
        a_snapshot({0: bounds(0, 15)}), retention_ms=ms(3 * HOUR), retention_bytes=3_000
    )
    left = time_to_loss(snapshot, 0, outlook, now=NOON)

    assert (left.by_age, left.by_size) == (3 * HOUR, 2 * HOUR)
    assert left.shortest == 2 * HOUR
    assert time_to_loss(snapshot, 1, outlook, now=NOON).shortest is None


def test_a_time_that_no_calendar_holds_is_only_far_away() -> None:
    head = BatchHead(5, 6, 2**63 - 1, 100, None)
    snapshot = replace(a_snapshot({0: bounds(0, 15)}), retention_ms=2**63 - 1)
    left = time_to_loss(snapshot, 0, Outlook({0: head}), now=NOON).by_age

    assert left is not None
    assert left > timedelta(days=900_000)


@pytest.mark.parametrize(
    ("age", "words"), [(7 * DAY - 5 * HOUR, "keeps it for 5.0 h more"), (8 * DAY, "at any moment")]
)
def test_a_near_loss_says_how_near(age: timedelta, words: str) -> None:
    snapshot = replace(a_snapshot({0: bounds(0, 15)}), retention_ms=ms(7 * DAY))
    outlook = Outlook({0: BatchHead(5, 6, NOON_MS - ms(age), 100, None)})
    (found,) = losses_near(
        FEED,
        by_partition(an_account(frontier=5)),
        snapshot,
        outlook,
        now=NOON,
        warn=6 * HOUR,
        run_period=HOUR,
    )

    assert words in found.cause
    assert found.evidence["seconds"] == (7 * DAY - age).total_seconds()
