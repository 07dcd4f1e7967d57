"""What is said of a feed between two reports: what is new, what is over, what may go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.finding_codes import Level
from tallystick.domain.report.document import KEPT_FOR, perhaps_thinned
from tallystick.domain.report.news import Standing, Told, Wish, news_of, told_of
from tallystick.domain.report.standing import Heard, LastHeard, verdict_now
from tallystick.domain.verdicts import Verdict

OK, LOSS, UNKNOWN = Verdict.PROVEN_OK, Verdict.PROVEN_LOSS, Verdict.UNKNOWN
SIX = datetime(2026, 11, 1, 6, tzinfo=UTC)
SEVEN = datetime(2026, 11, 1, 7, tzinfo=UTC)


def now(
    found: Iterable[int] = (),
    ended: Iterable[int] = (),
    verdict: Verdict | None = OK,
    late: datetime | None = None,
    newest: int = 9,
    asked: Iterable[int] = (),
) -> Standing:
    # The finding itself plays no part here.
    stored: Any = {each: each for each in found}
    over: Any = {each: each for each in ended}
    requests: Any = {each: each for each in asked}
    return Standing(stored, over, newest, verdict, late, SEVEN, requests)


def told(*found: int, verdict: Verdict | None = OK, late: datetime | None = None) -> Told:
    return Told(found, 9, verdict, late)


CASES: list[tuple[str, Told | None, Standing, dict[str, Any]]] = [
    ("nothing is wrong, nobody was told", None, now(), {}),
    ("no report yet", None, now(verdict=None), {}),
    ("the first report is calm", told(verdict=None), now(), {}),
    ("a first report, not calm", told(verdict=None), now(verdict=UNKNOWN), {"verdict": UNKNOWN}),
    ("what stands, to a new one", None, now([3], verdict=LOSS), {"opened": [3], "verdict": LOSS}),
    ("what was over before is no news to them", None, now(ended=[2]), {}),
    ("told before", told(3, verdict=LOSS), now([3], verdict=LOSS), {}),
    ("a new one", told(3, verdict=LOSS), now([3, 4], verdict=LOSS), {"opened": [4]}),
    ("one is over", told(3, 4), now([4], [3]), {"over": [3]}),
    ("it came and went", told(), now(ended=[5]), {"over": [5]}),
    ("the verdict changes", told(), now(verdict=UNKNOWN), {"verdict": UNKNOWN}),
    ("and back", told(verdict=UNKNOWN), now(), {"verdict": OK}),
    ("late", told(), now(late=SIX), {"late": SIX}),
    ("later windows are late, too", told(late=SIX), now(late=SEVEN), {}),
    ("no more", told(late=SIX), now(), {"late_no_more": SIX}),
    ("a request waits", told(), now(asked=[7]), {"asked": [7]}),
    ("it waits still, and another one", Told((), 9, OK, None, (7,)), now(asked=[7, 8]),
     {"asked": [8]}),
    ("somebody has answered", Told((), 9, OK, None, (7,)), now(), {}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "standing", "expected"), [each[1:] for each in CASES],
                         ids=[each[0] for each in CASES])  # fmt: skip
def test_the_news_are_the_difference(
    before: Told | None, standing: Standing, expected: dict[str, Any]
) -> None:
    news = news_of(before, standing, Wish())
    said: dict[str, Any] = {
        "opened": list(news.opened),
        "over": list(news.over),
        "verdict": news.verdict if news.verdict is not news.verdict_before else None,
        "late": news.late,
        "late_no_more": news.late_no_more,
        "asked": list(news.asked),
    }
    assert {name: each for name, each in said.items() if each} == expected
    assert bool(news) == bool(expected)


def test_what_ends_while_it_is_read_is_told_the_next_time() -> None:
    before = told(3)
    torn = now([], [])  # it stood open no more, and had not ended yet when that was asked
    assert not news_of(before, torn, Wish())
    known = told_of(before, torn, Wish())
    assert list(news_of(known, now([], [3]), Wish()).over) == [3]


standings = st.builds(
    now,
    found=st.sets(st.integers(1, 4)),
    ended=st.sets(st.integers(5, 8)),
    verdict=st.sampled_from([None, OK, LOSS, UNKNOWN]),
    late=st.sampled_from([None, SIX, SEVEN]),
    asked=st.sets(st.integers(1, 3)),
)


@given(st.none() | st.builds(told, late=st.sampled_from([None, SIX])), standings)
def test_nothing_is_told_twice(before: Told | None, standing: Standing) -> None:
    known = told_of(before, standing, Wish())
    same = now(
        standing.open_findings, (), standing.verdict, standing.late_window, asked=standing.requests
    )
    assert not news_of(known, same, Wish())
    assert told_of(known, same, Wish()) == known


def found_as(*verdicts: Verdict) -> Mapping[int, Any]:
    """Findings 1, 2 ... of these verdicts."""
    return {number: SimpleNamespace(verdict=each) for number, each in enumerate(verdicts, 1)}


LOSSES = Wish({LOSS}, is_told_late=False)
LATE_ONLY = Wish(())


@pytest.mark.parametrize(
    ("wish", "opened", "change", "late"),
    [
        (Wish(), [1, 2], (LOSS, OK), SIX),
        (LOSSES, [1], (LOSS, OK), None),
        (Wish({UNKNOWN}), [2], None, SIX),
        (LATE_ONLY, [], None, SIX),
    ],
    ids=["all", "losses", "unknown", "late windows"],
)
def test_people_hear_of_the_verdicts_they_want(
    wish: Wish, opened: list[int], change: tuple[Verdict, Verdict] | None, late: datetime | None
) -> None:
    worse = Standing(found_as(LOSS, UNKNOWN), {}, 2, LOSS, SIX, SEVEN, {})
    news, known = news_of(told(), worse, wish), told_of(told(), worse, wish)
    assert [each.verdict for each in news.opened] == [
        worse.open_findings[each].verdict for each in opened
    ]
    said = (news.verdict, news.verdict_before) if news.verdict != news.verdict_before else None
    assert (said, news.late) == (change, late)
    cured = Standing({}, found_as(LOSS, UNKNOWN), 2, OK, None, SEVEN, {})
    news = news_of(known, cured, wish)
    assert [each.verdict for each in news.over] == [cured.ended[each].verdict for each in opened]
    assert (news.verdict is not news.verdict_before, news.late_no_more) == (bool(change), late)


HOURLY = Wish(remind_after=timedelta(hours=1))


def heard(wish: Wish, *steps: Standing) -> list[str]:
    """What somebody is told at each step."""
    known: Told | None = None
    said = []
    for each in steps:
        news = news_of(known, each, wish)
        known = told_of(known, each, wish)
        parts: dict[str, Any] = {
            "new": news.opened, "over": news.over, "still": news.still,
            "late": news.late, "still late": news.still_late, "asked": news.asked,
        }  # fmt: skip
        said.append(", ".join(name for name, part in parts.items() if part))
    return said


def at(
    minute: int,
    *found: int,
    ended: Iterable[int] = (),
    late: bool = False,
    asked: Iterable[int] = (),
) -> Standing:
    standing = now(found, ended, late=SIX if late else None, asked=asked)
    return replace(standing, at=SEVEN + timedelta(minutes=minute))


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([at(0, 1), at(59, 1), at(60, 1), at(119, 1), at(120, 1)],
         ["new", "", "still", "", "still"]),
        ([at(0, 1), at(59, 1, 2), at(60, 1, 2)], ["new", "new", "still"]),
        ([at(0, 1), at(30, ended=[1]), at(60), at(70, 2), at(129, 2)],
         ["new", "over", "", "new", ""]),
        ([at(0, 1), at(30, 2, ended=[1]), at(60, 2), at(90, 2)], ["new", "new, over", "", "still"]),
        ([at(0, late=True), at(30, late=True), at(60, late=True), at(120)],
         ["late", "", "still late", ""]),
        ([at(0, asked=[4]), at(30, asked=[4]), at(60, asked=[4]), at(120)],
         ["asked", "", "asked", ""]),
    ],
    ids=["each hour", "others' news do not put it off", "over", "another one", "late", "asked"],
)  # fmt: skip
def test_what_stands_is_told_again_so_long_after_all_of_it_was_told(
    steps: list[Standing], said: list[str]
) -> None:
    assert heard(HOURLY, *steps) == said
    silent = [each for each in heard(Wish(), *steps) if "still" in each]
    assert silent == [], "nobody is reminded who did not ask for it"
    assert sum("asked" in each for each in heard(Wish(), *steps)) <= 1


def test_nobody_is_reminded_of_what_they_do_not_want_to_hear() -> None:
    hourly = timedelta(hours=1)
    wish = Wish({LOSS}, is_told_late=False, is_told_requests=False, remind_after=hourly)
    steps = [
        replace(at(each, late=True, asked=[4]), open_findings=found_as(UNKNOWN))
        for each in (0, 60, 120)
    ]
    assert heard(wish, *steps) == ["", "", ""]


NOW = datetime(2026, 11, 8, 12, tzinfo=UTC)
NOBODY = {Level.L2: LastHeard(None, None)}
BROKER_ALONE = {Level.L1: LastHeard(NOW, None), Level.L2: LastHeard(None, None)}
ANSWERS = {level: LastHeard(NOW, None) for level in (Level.L1, Level.L2)}
SILENT = ANSWERS | {Level.L4: LastHeard(None, NOW)}


@pytest.mark.parametrize(
    ("heard", "is_blank", "standing", "now"),
    [
        (NOBODY, False, [], UNKNOWN),
        (NOBODY, False, [LOSS], LOSS),
        (BROKER_ALONE, False, [], UNKNOWN),
        (ANSWERS, False, [], OK),
        (ANSWERS, False, [Verdict.WAIVED], Verdict.WAIVED),
        (ANSWERS, False, [Verdict.WAIVED, Verdict.PROVEN_DUP], Verdict.PROVEN_DUP),
        (ANSWERS, True, [], UNKNOWN),
        (ANSWERS, True, [Verdict.SUSPECTED], UNKNOWN),
        (SILENT, False, [], UNKNOWN),
        (SILENT, False, [LOSS], LOSS),
    ],
)
def test_the_verdict_is_what_stands_and_unknown_where_somebody_could_not_tell(
    heard: Heard, is_blank: bool, standing: list[Verdict], now: Verdict
) -> None:
    assert verdict_now(heard, standing, is_blank=is_blank) is now


OF_PAGES = datetime(2026, 11, 30, 12, tzinfo=UTC)
OLD = ["20261101T070000Z.html", "20261101T080000Z.html", "20261101T230000Z.html"]
RECENT = ["20261102T000000Z.html", "20261102T010000Z.html", "20261130T110000Z.html"]


def test_old_pages_may_go_but_the_last_of_their_day() -> None:
    assert datetime(2026, 11, 2, 12, tzinfo=UTC) == OF_PAGES - KEPT_FOR
    assert perhaps_thinned([*OLD, *RECENT, "notes.html", "20261101T070000Z"], OF_PAGES) == OLD[:2]
