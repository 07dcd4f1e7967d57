"""How many rows a CPU-second reads back: `python bench/read_back.py [--webhdfs URL --fs URI]`.

Writes files with the landed schema once, then reads back their exact offsets several times. Without
a URL they lie in a temporary local directory, so the figure is decoding and counting alone.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.measured import Cost, in_turn, print_environment, print_result
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.local_directory import LocalFileStore

Columns = tuple[np.ndarray, np.ndarray]

DIRECTORY = "/tallystick-bench/read-back"
# What 128 MB of row group hold at 200 bytes a record.
ROWS_PER_GROUP = 600_000


def main() -> None:
    """Write, measure, print; one line for each shape of data."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as scratch:
        store = (
            WebHdfsFileStore(NameNodes([arguments.webhdfs]), arguments.fs)
            if arguments.webhdfs
            else LocalFileStore(Path(scratch))
        )
        print_environment()
        print(f"{arguments.webhdfs or 'a local directory'}; pyarrow {pa.__version__}")
        speeds = {}
        for name, shape in SHAPES.items():
            store.delete(DIRECTORY)
            per_file = arguments.rows // arguments.files
            for file in range(arguments.files):
                content = _file(*shape(file, per_file))
                store.write(f"{DIRECTORY}/part-{file}.parquet", content)
            rows = per_file * arguments.files
            cost = _measure(name, store, rows, arguments.runs)
            speeds[name] = round(rows / cost.cpu_seconds)
        store.delete(DIRECTORY)
    print_result("read_back", arguments.runs, {"rows_per_cpu_second": speeds}, {})


def _measure(name: str, store: LocalFileStore | WebHdfsFileStore, rows: int, runs: int) -> Cost:
    def read(_: str) -> None:
        found = store.read_back(DIRECTORY)
        if found.record_count != rows or found.doubled:
            raise SystemExit(f"{name}: {found.record_count} rows read, {rows} written")

    cost = in_turn({name: read}, pairs=runs)[name]
    print(
        f"{name:>20}: {rows:,} rows in {cost.wall_seconds:.2f} s, {cost.cpu_seconds:.2f} CPU-s"
        f" (median of {runs}): {rows / cost.cpu_seconds / 1e6:.1f} million rows per CPU-second"
    )
    return cost


def _dense(file: int, rows: int) -> Columns:
    return np.full(rows, file), np.arange(rows)


def _sparse(file: int, rows: int) -> Columns:
    offsets = np.arange(rows * 10 // 9 + 10)
    return np.full(rows, file), offsets[offsets % 10 != 0][:rows]


def _many(file: int, rows: int) -> Columns:
    """Two thousand small slices in each file."""
    slices = np.arange(rows) * 2_000 // rows
    return slices + file * 2_000, np.arange(rows)


def _shuffled(file: int, rows: int) -> Columns:
    """As no landing writes them: every row is a run."""
    return np.full(rows, file), np.random.default_rng(7).permutation(rows)


SHAPES: dict[str, Callable[[int, int], Columns]] = {
    "dense": _dense,
    "every tenth missing": _sparse,
    "2,000 slices a file": _many,
    "shuffled": _shuffled,
}


def _file(partitions: np.ndarray, offsets: np.ndarray) -> bytes:
    rows = len(offsets)
    table = pa.table(
        {
            "topic": pa.array(["bench"])
            .dictionary_encode()
            .take(pa.array(np.zeros(rows, np.int32))),
            "partition": pa.array(partitions.astype(np.int32)),
            "offset": pa.array(offsets.astype(np.int64)),
            "timestamp": pa.array(offsets * 1000, pa.timestamp("us", tz="UTC")),
            "value": pa.array([b"v" * 50] * rows, pa.binary()),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        compression_level=1,
        row_group_size=ROWS_PER_GROUP,
        data_page_version="1.0",
        data_page_size=1 << 20,
        write_page_checksum=True,
    )
    return buffer.getvalue()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--webhdfs", help="WebHDFS URL of a NameNode")
    parser.add_argument("--fs", default="hdfs://127.0.0.1:8020", help="its file system URI")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--files", type=int, default=6)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


if __name__ == "__main__":
    main()
