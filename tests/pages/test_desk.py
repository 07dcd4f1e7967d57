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
from tallystick.web.desk import PATIENCE, LedgerDesk
from tests.support.ledger_story import LedgerStory

SOON_SECONDS = 2.0


def refused(desk: LedgerDesk, question: Callable[[Ledger], object]) -> float:
    """After how many seconds the question was refused."""
    began = time.monotonic()
    with pytest.raises(LedgerUnavailable):
        asyncio.run(desk.ask(question))
    return time.monotonic() - began


def heads(ledger: Ledger) -> int:
    return len(ledger.feed_heads(most_runs=1))


def test_a_ledger_that_is_locked_is_told_soon_and_asked_again(story: LedgerStory) -> None:
    story.open({0: (0, 9)})
    desk = LedgerDesk(lambda: PostgresLedger(story.dsn, PATIENCE))
    with story.raw() as hand, hand.transaction():
        hand.execute("LOCK TABLE feed")
        assert refused(desk, heads) < SOON_SECONDS
    assert asyncio.run(desk.ask(heads)) == 1


def test_a_server_that_never_answers_is_told_soon() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as mute:
        address = f"postgresql://a:b@127.0.0.1:{mute.getsockname()[1]}/c"
        desk = LedgerDesk(lambda: PostgresLedger(address, PATIENCE))
        assert refused(desk, heads) < SOON_SECONDS


def test_no_server_at_all_is_told_at_once() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as gone:
        address = f"postgresql://a:b@127.0.0.1:{gone.getsockname()[1]}/c"
    assert refused(LedgerDesk(lambda: PostgresLedger(address, PATIENCE)), heads) < SOON_SECONDS


def test_many_who_wait_take_few_threads_and_what_has_not_begun_is_never_asked() -> None:
    held, asked = threading.Event(), []

    def question(ledger: Ledger) -> None:
        asked.append(threading.current_thread().name)
        held.wait(SOON_SECONDS * 2)

    async def many(desk: LedgerDesk) -> list[object]:
        questions = (desk.ask(question) for _ in range(20))
        return list(await asyncio.gather(*questions, return_exceptions=True))

    nobody: Callable[[], Ledger] = lambda: PostgresLedger("host=nowhere")  # noqa: E731
    answers = asyncio.run(many(LedgerDesk(nobody)))
    held.set()

    assert all(isinstance(each, LedgerUnavailable) for each in answers)
    assert len(asked) == len(set(asked)) == 4


def test_a_connection_that_was_missing_is_looked_up_again(story: LedgerStory) -> None:
    tries: list[object] = [ConnectionMissing("ledger_default", None, "one")]

    def opened() -> Ledger:
        if tries:
            raise tries.pop()  # type: ignore[misc]
        return PostgresLedger(story.dsn, PATIENCE)

    desk = LedgerDesk(opened)
    with pytest.raises(ConnectionMissing):
        asyncio.run(desk.ask(heads))
    assert asyncio.run(desk.ask(heads)) == 0
