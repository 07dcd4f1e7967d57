"""The Python on docs/reading.md that asks no cluster but HDFS, run as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import requests

from tests.support.repository import ROOT
from tests.support.sandbox_fixtures import HdfsPlace

LANDED = "/reading-page/orders/gen=1/dt=2026-11-01/hour=06/batch=1c0d/part-0.parquet"


def written_code(word: str) -> str:
    """The indented block of the page that holds this word, as it stands there."""
    blocks: list[list[str]] = [[]]
    for line in (ROOT / "docs" / "reading.md").read_text().splitlines():
        if line.startswith("    ") or (not line and blocks[-1]):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    [found] = [block for block in blocks if any(word in line for line in block)]
    return textwrap.dedent("\n".join(found))


def put(hdfs: HdfsPlace, path: str, content: bytes) -> None:
    asked = f"{hdfs.webhdfs_url}/webhdfs/v1{path}"
    query = {"op": "CREATE", "user.name": hdfs.user, "overwrite": "true"}
    answer = requests.put(asked, params=query, data=content, timeout=30)
    assert answer.status_code == requests.codes.created, answer.text


def test_python_reads_the_paths_of_files_by_webhdfs(hdfs: HdfsPlace, tmp_path: Path) -> None:
    file = tmp_path / "part.parquet"
    pq.write_table(pa.table({"partition": [0, 0, 1], "offset": [4, 5, 9]}), file)
    put(hdfs, LANDED, file.read_bytes())
    (tmp_path / "paths.txt").write_text(f"{LANDED}\n")

    told = subprocess.run(
        [sys.executable, "-c", written_code("import fsspec")],
        cwd=tmp_path,
        env={**os.environ, "WEBHDFS_URL": hdfs.webhdfs_url},
        capture_output=True,
        text=True,
        check=False,
    )

    assert told.stdout == f"{LANDED} 3\n", told.stderr
