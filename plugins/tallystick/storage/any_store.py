"""Every store answers so: what is asked of its rows and of its root, over its own verbs.

A store takes absolute paths, without an empty, `.` or `..` part, and without a ':' (which HDFS
refuses).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from hashlib import md5
from typing import Final
from uuid import uuid4

import numpy as np

from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.paths import PROBE_PREFIX, STAGING_NAME
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.record_hash import record_hash
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.errors import ManifestMismatch, StorageError, StorageRefused, TargetOccupied
from tallystick.ports.file_store import FileStore
from tallystick.storage.landed_rows import opened, payloads_of, rows_of_slices
from tallystick.storage.read_back import read_back, read_back_file

# HDFS's own checksums, made again from a file's bytes: a file that lies in other blocks, or was
# copied with other chunks, has another checksum of the same bytes.
#
# `MD5-of-<n>MD5-of-<c>CRC32C` is an MD5 of MD5s, one for each block, of the CRCs of each `c`
# bytes. A block has `n` CRCs; where `n` is 0, all bytes are in one. That of a file that is stored
# by erasure coding is of striped blocks, and is not made here.
_KIND: Final = re.compile(r"MD5-of-(\d+)MD5-of-(\d+)(CRC32C?)")
_POLYNOMIALS: Final = {"CRC32": 0xEDB88320, "CRC32C": 0x82F63B78}
_CRC_BYTES: Final = 4
_PIECE_BYTES: Final = 16 << 20
# Behind the lengths of chunk and block, as the server tells a checksum.
_MD5_AT: Final = slice(24, 56)


def checksum_like(fetch: Callable[[int, int], bytes], length_bytes: int, like: str) -> str | None:
    """The checksum of these bytes in the kind of `like`; None for a kind that is not known here.

    `fetch(position, length)` reads them, piece by piece.
    """
    kind, _, told = like.partition(":")
    match = _KIND.fullmatch(kind)
    if not match:
        return None
    per_block, per_crc = int(match[1]), int(match[2])
    piece = per_crc * max(1, _PIECE_BYTES // per_crc)
    crcs = b"".join(
        _crcs(fetch(at, min(piece, length_bytes - at)), per_crc, match[3])
        for at in range(0, length_bytes, piece)
    )
    return f"{kind}:{told[: _MD5_AT.start]}{_of_blocks(crcs, per_block)}{told[_MD5_AT.stop :]}"


def _of_blocks(crcs: bytes, crcs_in_block: int) -> str:
    size = crcs_in_block * _CRC_BYTES or max(1, len(crcs))
    blocks = b"".join(md5(crcs[at : at + size]).digest() for at in range(0, len(crcs), size))
    # HDFS takes the MD5 of its whole buffer, which grows by doubling.
    room = 32
    while room < len(blocks):
        room *= 2
    return md5(blocks.ljust(room, b"\0")).hexdigest()


def _crcs(content: bytes, per_crc: int, of: str) -> bytes:
    """The CRC of each so many bytes, the last ones may be fewer; all whole ones side by side."""
    whole = len(content) // per_crc
    crc = np.full(whole, 0xFFFFFFFF, np.uint32)
    columns = np.frombuffer(content, np.uint8, whole * per_crc).reshape(whole, per_crc).T
    for column in np.ascontiguousarray(columns):
        crc = _table(of)[(crc ^ column) & 0xFF] ^ (crc >> 8)
    rest = content[whole * per_crc :]
    return (~crc).astype(">u4").tobytes() + (_crcs(rest, len(rest), of) if rest else b"")


@cache
def _table(of: str) -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIALS[of]), table >> 1)
    return table


_CONTENT: Final = b"written to prove that a landing can be; safe to delete\n"


class AnyStore:
    """The part of `FileStore` that rests on its other verbs; see there for every promise."""

    def require_writable(self: FileStore, root: str, shown_in: str | None = None) -> None:
        """Return if a small landing went well under the root."""
        root = checked(root).rstrip("/")
        _prove_writable(self, root, checked(shown_in or root).rstrip("/"))

    def read_back(self: FileStore, directory: str, late_before: datetime | None = None) -> ReadBack:
        """The directory's Parquet files, the exact offsets they hold, and their late rows."""
        return read_back(self, checked(directory), late_before)

    def read_back_file(self: FileStore, directory: str, name: str) -> ReadBack:
        """The exact offsets of one file."""
        return read_back_file(self, checked(directory), name)

    def checksum_like(self: FileStore, path: str, length_bytes: int, like: str) -> str | None:
        """The checksum of the file's bytes, in the kind of another one."""

        def fetch(position: int, length: int) -> bytes:
            return self.read_range(checked(path), position, length)

        return checksum_like(fetch, length_bytes, like)

    def landed_record_hash(
        self: FileStore, directory: str, file_name: str, partition: int, offset: int
    ) -> bytes:
        """`record_hash` over one landed row."""
        file = opened(self, checked(directory), file_name)
        place = OffsetRange(TopicPartition("", partition), offset, offset + 1)
        row = next(rows_of_slices(file, [place]), None)
        if row is None:
            raise ManifestMismatch(
                file.path, f"a row of partition {partition}, offset {offset}", "none"
            )
        return record_hash(
            partition=partition,
            offset=offset,
            timestamp_ms=row.timestamp_ms,
            key=row.key,
            value=row.value,
            headers=row.headers,
        )

    def payloads(self: FileStore, directory: str, file_name: str) -> Iterator[tuple[int, Payload]]:
        """Every row's partition, and what its producer sent."""
        yield from payloads_of(opened(self, checked(directory), file_name))

    def landed_slices(
        self: FileStore,
        directory: str,
        file_name: str,
        slices: Sequence[OffsetRange],
    ) -> Iterator[tuple[int, SeenRecord]]:
        """Partition and record of each row that the slices hold."""
        for row in rows_of_slices(opened(self, checked(directory), file_name), slices):
            yield row.partition, SeenRecord.of(**row._asdict())


def _prove_writable(store: FileStore, root: str, shown_in: str) -> None:
    """Return if a small landing under another name went well: staged, renamed, deleted again.

    Writing a block shows what no figure does: permission, safe mode, both quotas of every directory
    above, a DataNode that takes it. It is shown where batches will be, for a directory may have a
    quota, an owner and a zone of encryption of its own. The rename onto a directory that is there
    must be refused: a gateway that ignores the option would put later batches inside each other.
    """
    name, staging = f"{PROBE_PREFIX}{uuid4().hex}", f"{root}/{STAGING_NAME}"
    staged, shown = f"{staging}/{name}", f"{shown_in}/{name}"
    try:
        store.write(f"{staged}/block", _CONTENT)
        try:
            store.rename_exclusive(staged, staging)
        except TargetOccupied:
            store.rename_exclusive(staged, shown)
        else:
            raise StorageRefused(staging, "a rename did not stop at a directory that exists")
    except StorageError:
        # Left-overs are hidden from readers; a second error would only hide the first one.
        with suppress(StorageError):
            store.delete(staged)
            store.delete(shown)
        raise
    store.delete(shown)


def checked(path: str) -> str:
    """The path without a slash at its end; raises StorageRefused when no store could hold it."""
    parts = path.rstrip("/").split("/")
    if not path.startswith("/"):
        raise StorageRefused(path, "the path is not absolute")
    if any(part in ("", ".", "..") for part in parts[1:]):
        raise StorageRefused(path, "the path has an empty, '.' or '..' part")
    if ":" in path or "\0" in path:
        raise StorageRefused(path, "the path contains ':' or a null character")
    return "/".join(parts) or "/"


def parent_of(path: str) -> str:
    """The directory that holds a checked path; the root is its own parent."""
    return path.rpartition("/")[0] or "/"
