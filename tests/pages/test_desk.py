"""A slow or absent ledger: who asks is told within two seconds, and few threads ever wait."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from tallystick.errors import ConnectionMissing, LedgerUnavailable
from tallystick.ledger.postgres import PostgresLedger
from tallystick.ports.ledger import Ledger
from tallystick.web.desk import PATIENCE, LedgerDesk, LedgerThreads
from tests.support.ledger_story import LedgerStory

SOON_SECONDS = 2.0


def refused(threads: LedgerThreads, question: Callable[[Ledger], object]) -> float:
    """After how many seconds the question was refused."""
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable):
        asyncio.run(LedgerDesk(threads).ask(question))
    return time.monotonic() - began


def heads(ledger: Ledger) -> int:
    return len(ledger.feed_heads(most_runs=1))


def test_a_ledger_that_is_locked_is_told_soon_and_asked_again(story: LedgerStory) -> None:
    story.open({0: (0, 9)})
    threads = LedgerThreads(lambda: PostgresLedger(story.dsn, PATIENCE))
    with story.raw() as hand, hand.transaction():
        hand.execute("LOCK TABLE feed")
        assert refused(threads, heads) < SOON_SECONDS
    assert asyncio.run(LedgerDesk(threads).ask(heads)) == 1


def test_a_server_that_never_answers_is_told_soon() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        address = f"postgresql://a:b@127.0.0.1:{mute.getsockname()[1]}/c"
        threads = LedgerThreads(lambda: PostgresLedger(address, PATIENCE))
        assert refused(threads, heads) < SOON_SECONDS


def test_no_server_at_all_is_told_at_once() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        address = f"postgresql://a:b@127.0.0.1:{gone.getsockname()[1]}/c"
    assert refused(LedgerThreads(lambda: PostgresLedger(address, PATIENCE)), heads) < SOON_SECONDS


def test_many_who_wait_take_few_threads_and_what_has_not_begun_is_never_asked() -> None:
    held, asked = threading.Event(), []

    def question(ledger: Ledger) -> None:
        asked.append(threading.current_thread().name)
        held.wait(SOON_SECONDS * 2)

    async def many(threads: LedgerThreads) -> list[object]:
        questions = (LedgerDesk(threads).ask(question) for _ in range(20))
        return list(await asyncio.gather(*questions, return_exceptions=True))

    nobody: Callable[[], Ledger] = lambda: PostgresLedger("host=nowhere")  # noqa: E731
    answers = asyncio.run(many(LedgerThreads(nobody)))
    held.set()

    assert all(isinstance(each, LedgerUnavailable) for each in answers)
    assert len(asked) == len(set(asked)) == 4


def test_a_connection_that_was_missing_is_looked_up_again(story: LedgerStory) -> None:
    tries: list[object] = [ConnectionMissing("ledger_default", None, "one")]

    def opened() -> Ledger:
        if tries:
            raise tries.pop()  # type: ignore[misc]
        return PostgresLedger(story.dsn, PATIENCE)

    threads = LedgerThreads(opened)
    with pytest.raises(ConnectionMissing):
        asyncio.run(LedgerDesk(threads).ask(heads))
    assert asyncio.run(LedgerDesk(threads).ask(heads)) == 0


def test_who_asks_twice_waits_no_longer_than_who_asks_once() -> None:
    held = threading.Event()
    threads = LedgerThreads(lambda: PostgresLedger("host=nowhere"))

    async def twice() -> None:
        desk = LedgerDesk(threads)
        await desk.ask(lambda ledger: time.sleep(SOON_SECONDS / 2))
        await desk.ask(lambda ledger: held.wait(SOON_SECONDS * 2))

    began = time.monotonic()
    with pytest.raises(LedgerUnavailable):
        asyncio.run(twice())
    held.set()
    assert time.monotonic() - began < SOON_SECONDS


def test_a_question_that_nobody_waits_for_asks_nothing_more(story: LedgerStory) -> None:
    held, asked = threading.Event(), []

    def question(ledger: Ledger) -> None:
        held.wait(SOON_SECONDS * 2)
        while len(asked) < 5:
            asked.append(heads(ledger))

    threads = LedgerThreads(lambda: PostgresLedger(story.dsn, PATIENCE))
    assert refused(threads, question) < SOON_SECONDS
    held.set()
    assert asyncio.run(LedgerDesk(threads).ask(heads)) == 0
    assert not asked
