"""A landing imports no pandas: it takes longer than everything else that a small one does here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.landed_rows import a_row, write

LANDING = """
import sys
from pathlib import Path
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.spark.connect_server import ConnectServer
from tests.support.local_directory import LocalFileStore

store, name = LocalFileStore(Path(sys.argv[1])), "part.parquet"
ConnectServer("sc://h", lambda each: f"sc://h/;session_id={each}")._opened(sys.argv[2], 1).close()
assert store.read_back("/data").landed
assert store.landed_record_hash("/data", name, 0, 1)
asked = OffsetRange(TopicPartition("orders", 0), 0, 2)
assert len(list(store.landed_slices("/data", name, [asked]))) == 2
assert "pandas" not in sys.modules

import pandas
from pyspark.sql.connect import session
from pyspark.sql.connect.client import core
assert session.pd.DataFrame is core.pd.DataFrame is pandas.DataFrame
assert session.is_datetime64_dtype(pandas.Series(dtype="datetime64[ns]").dtype)
"""


def test_a_landing_imports_no_pandas_and_who_does_has_the_whole_of_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    rows = [a_row(0, headers=[("a", b"1")]), a_row(1)]
    write(tmp_path / "data" / "part.parquet", rows)
    session_id = "00000000-0000-0000-0000-000000000001"

    argv = [sys.executable, "-c", LANDING, str(tmp_path), session_id]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
