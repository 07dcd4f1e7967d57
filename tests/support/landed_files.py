"""Reads landed files by pyarrow, straight from HDFS: never by the project's own reader."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import requests

from tests.support.kafka_records import Record


@dataclass(frozen=True, slots=True)
class Landed:
    """One file as it lies in HDFS."""

    name: str
    status: dict[str, Any]
    """WebHDFS's FileStatus: length, replication and so on."""
    file: pq.ParquetFile

    def records(self) -> list[Record]:
        """The rows in the order of the file."""
        table = self.file.read()
        table = table.set_column(
            table.schema.get_field_index("timestamp"),
            "timestamp",
            table["timestamp"].cast(pa.int64()),
        )
        return [
            Record(
                row["partition"],
                row["offset"],
                _whole_ms(row["timestamp"]),
                row["timestamp_type"],
                row["key"],
                row["value"],
                tuple((each["key"], each["value"]) for each in row["headers"] or ()),
            )
            for row in table.to_pylist()
        ]

    def slices(self) -> dict[int, tuple[int, int, int]]:
        """By partition: smallest offset, largest offset, rows."""
        found: dict[int, list[int]] = {}
        table = self.file.read(columns=["partition", "offset"])
        for partition, offset in zip(
            table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True
        ):
            found.setdefault(partition, []).append(offset)
        return {each: (min(found[each]), max(found[each]), len(found[each])) for each in found}


def put(webhdfs_url: str, path: str, content: bytes, user: str) -> None:
    """Write a small file."""
    url = f"{_url(webhdfs_url, path)}?op=CREATE&overwrite=true&user.name={user}"
    told = requests.put(url, allow_redirects=False, timeout=30)
    assert told.is_redirect, told.text
    requests.put(told.headers["Location"], data=content, timeout=30).raise_for_status()


def write_once(webhdfs_url: str, user: str) -> None:
    """The first write of new daemons, which takes seconds: no impatient test shall wait for it."""
    put(webhdfs_url, "/first-write", b"here", user)


def names_in(webhdfs_url: str, path: str) -> list[str]:
    """Names of all entries of a directory, sorted."""
    return sorted(each["pathSuffix"] for each in _list(webhdfs_url, path))


def names_below(webhdfs_url: str, path: str, user: str | None = None) -> list[str]:
    """Names of all files below a directory, hidden ones too; none where there is no directory."""
    found: list[str] = []
    try:
        entries = _list(webhdfs_url, path, user)
    except requests.HTTPError as failure:
        if failure.response.status_code != 404:
            raise
        return []
    for each in entries:
        below = f"{path}/{each['pathSuffix']}"
        found += [below] if each["type"] == "FILE" else names_below(webhdfs_url, below, user)
    return found


def landed_in(webhdfs_url: str, path: str) -> list[Landed]:
    """All Parquet files of a directory, by name."""
    found = []
    for status in _list(webhdfs_url, path):
        name = status["pathSuffix"]
        if not name.startswith("_"):
            answer = requests.get(f"{_url(webhdfs_url, path)}/{name}?op=OPEN", timeout=60)
            answer.raise_for_status()
            file = pq.ParquetFile(io.BytesIO(answer.content), page_checksum_verification=True)
            found.append(Landed(name, status, file))
    return sorted(found, key=lambda each: each.name)


def rows_in(webhdfs_url: str, path: str) -> list[Record]:
    """All rows of a directory, sorted by place."""
    rows = [row for each in landed_in(webhdfs_url, path) for row in each.records()]
    return sorted(rows, key=lambda each: (each.partition, each.offset))


def _list(webhdfs_url: str, path: str, user: str | None = None) -> list[dict[str, Any]]:
    asked = {"op": "LISTSTATUS"} | ({"user.name": user} if user else {})
    answer = requests.get(_url(webhdfs_url, path), params=asked, timeout=30)
    answer.raise_for_status()
    found: list[dict[str, Any]] = answer.json()["FileStatuses"]["FileStatus"]
    return found


def _url(webhdfs_url: str, path: str) -> str:
    return f"{webhdfs_url.rstrip('/')}/webhdfs/v1{path}"


def _whole_ms(micros: int) -> int:
    milliseconds, rest = divmod(micros, 1000)
    assert rest == 0, f"{micros} microseconds are no whole milliseconds"
    return milliseconds
