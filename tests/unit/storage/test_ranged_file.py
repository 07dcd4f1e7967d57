from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from tallystick.storage.parquet_file import TAIL_BYTES, RangedFile

CONTENT = bytes(range(256)) * 4096  # 1 MB


class Remote:
    """Keeps what was fetched."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.fetched: list[tuple[int, int]] = []

    def fetch(self, position: int, length: int) -> bytes:
        self.fetched.append((position, length))
        return self.content[position : position + length]


def opened(content: bytes = CONTENT) -> tuple[RangedFile, Remote]:
    remote = Remote(content)
    return RangedFile(remote.fetch, len(content)), remote


def test_the_tail_is_fetched_once_and_never_again() -> None:
    file, remote = opened()
    file.seek(-8, io.SEEK_END)
    assert file.read() == CONTENT[-8:]
    file.seek(-TAIL_BYTES, io.SEEK_END)
    assert file.read(100) == CONTENT[-TAIL_BYTES:][:100]
    assert remote.fetched == [(len(CONTENT) - TAIL_BYTES, TAIL_BYTES)]


def test_a_file_smaller_than_the_tail_is_one_request() -> None:
    file, remote = opened(b"0123456789")
    file.seek(2)
    assert (file.read(5), file.tell(), file.read(), file.read(1)) == (b"23456", 7, b"789", b"")
    assert remote.fetched == [(0, 10)]


def test_an_empty_file_is_never_fetched() -> None:
    file, remote = opened(b"")
    assert (file.read(), remote.fetched) == (b"", [])


@given(st.data())
def test_reads_are_those_of_the_file_itself(data: st.DataObject) -> None:
    content = CONTENT[:500_000]
    file, _ = opened(content)
    plain = io.BytesIO(content)
    for _ in range(5):
        position, length = data.draw(st.tuples(st.integers(0, 510_000), st.integers(-1, 9_000)))
        file.seek(position)
        plain.seek(position)
        assert file.read(length) == plain.read(length)
        assert file.tell() == plain.tell()
