"""A slow or absent ledger: who asks is told so soon, and few threads ever wait.

What is asked here is never answered before the reader is told: no clock is looked at for that.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from typing import Any

import pytest

from tallystick.errors import ConnectionMissing, LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tallystick.web.desk import READER_SECONDS, LedgerDesk, LedgerThreads, patience_of
from tests.support.busy import BUSY_SECONDS
from tests.support.ledger_story import LedgerStory

PATIENCE = patience_of(READER_SECONDS)
BUSY = timedelta(seconds=BUSY_SECONDS)


def refused(
    threads: LedgerThreads, question: Callable[[Ledger], object], *, by_the_reader: bool
) -> None:
    """By the reader's own patience, or before it by the ledger's."""
    with pytest.raises(LedgerUnavailable) as caught:
        asyncio.run(LedgerDesk(threads).ask(question))
    assert (f"no answer within {threads.reader_seconds:g} s" in str(caught.value)) is by_the_reader


def heads(ledger: Ledger) -> int:
    return len(ledger.feed_heads(most_runs=1))


def nobody() -> Ledger:
    return Ledger("host=nowhere")


def test_a_statement_is_given_up_before_the_reader_is() -> None:
    assert timedelta(0) < PATIENCE < timedelta(seconds=READER_SECONDS) < timedelta(seconds=2)
    assert LedgerThreads(nobody).reader_seconds == READER_SECONDS


def test_a_ledger_that_is_locked_is_told_and_asked_again(story: LedgerStory) -> None:
    story.open({0: (0, 9)})
    patience = [BUSY, PATIENCE]
    threads = LedgerThreads(lambda: Ledger(story.dsn, patience.pop()), BUSY_SECONDS)
    with story.raw() as hand, hand.transaction():
        hand.execute("LOCK TABLE feed")
        refused(threads, heads, by_the_reader=False)
    assert asyncio.run(LedgerDesk(threads).ask(heads)) == 1


@pytest.mark.parametrize(
    ("ledgers", "readers", "by_the_reader"),
    [(BUSY, READER_SECONDS, True), (PATIENCE, BUSY_SECONDS, False)],
)
def test_a_server_that_never_answers_is_told(
    ledgers: timedelta, readers: float, by_the_reader: bool
) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        address = f"postgresql://a:b@127.0.0.1:{mute.getsockname()[1]}/c"
        threads = LedgerThreads(lambda: Ledger(address, ledgers), readers)
        refused(threads, heads, by_the_reader=by_the_reader)


def test_no_server_at_all_is_told() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        address = f"postgresql://a:b@127.0.0.1:{gone.getsockname()[1]}/c"
    threads = LedgerThreads(lambda: Ledger(address, PATIENCE), BUSY_SECONDS)
    refused(threads, heads, by_the_reader=False)


def test_many_who_wait_take_few_threads_and_what_has_not_begun_is_never_asked() -> None:
    held, asked = threading.Event(), []

    def question(ledger: Ledger) -> None:
        asked.append(threading.current_thread().name)
        held.wait(BUSY_SECONDS)

    async def many(threads: LedgerThreads) -> list[object]:
        questions = (LedgerDesk(threads).ask(question) for _ in range(20))
        return list(await asyncio.gather(*questions, return_exceptions=True))

    answers = asyncio.run(many(LedgerThreads(nobody)))
    held.set()

    assert all(isinstance(each, LedgerUnavailable) for each in answers)
    assert len(asked) == len(set(asked)) == 4


def test_a_connection_that_was_missing_is_looked_up_again(story: LedgerStory) -> None:
    tries: list[object] = [ConnectionMissing("ledger_default", None, "one")]

    def opened() -> Ledger:
        if tries:
            raise tries.pop()  # type: ignore[misc]
        return Ledger(story.dsn, BUSY)

    threads = LedgerThreads(opened, BUSY_SECONDS)
    with pytest.raises(ConnectionMissing):
        asyncio.run(LedgerDesk(threads).ask(heads))
    assert asyncio.run(LedgerDesk(threads).ask(heads)) == 0


def test_who_asks_twice_waits_no_longer_than_who_asks_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed: list[float] = []
    wait_for = asyncio.wait_for

    async def noted(asked: Any, seconds: float) -> Any:
        allowed.append(seconds)
        return await wait_for(asked, seconds)

    async def twice() -> None:
        desk = LedgerDesk(LedgerThreads(nobody, BUSY_SECONDS))
        await desk.ask(lambda ledger: time.sleep(0.5))
        await desk.ask(lambda ledger: None)

    monkeypatch.setattr(asyncio, "wait_for", noted)
    asyncio.run(twice())

    first, second = allowed
    assert first == BUSY_SECONDS
    assert second <= first - 0.5


def test_a_question_that_nobody_waits_for_asks_nothing_more(story: LedgerStory) -> None:
    held, asked = threading.Event(), []

    def question(ledger: Ledger) -> None:
        held.wait(BUSY_SECONDS)
        while len(asked) < 5:
            asked.append(heads(ledger))

    threads = LedgerThreads(lambda: Ledger(story.dsn, BUSY))
    refused(threads, question, by_the_reader=True)
    threads.reader_seconds = BUSY_SECONDS
    held.set()
    assert asyncio.run(LedgerDesk(threads).ask(heads)) == 0
    assert not asked
