"""What travels to the cluster stands on its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tallystick.spark.cluster_zip import ARCHIVE_NAME, write_cluster_zip
from tests.support.repository import ROOT

# Knows the standard library, pyspark's name and the archive: nothing else. Each module is the first
# of the package to be imported; what an earlier one has needed is compiled already.
BARE = """
import builtins, functools, importlib, sys, traceback
zip_path, *modules = sys.argv[1:]
sys.path = [each for each in sys.path if "-packages" not in each] + [zip_path]
builtins.compile = functools.cache(compile)
outside = {name.split(".")[0] for name in sys.modules} | sys.stdlib_module_names
for module in modules:
    try:
        loaded = importlib.import_module(module)
        assert loaded.__file__.startswith(zip_path), loaded.__file__
    except Exception:
        sys.exit(module + ": " + traceback.format_exc())
    found = [name for name in sys.modules if name.split(".")[0] not in outside]
    print(module, *sorted({name.split(".")[0] for name in found}))
    for name in found:
        del sys.modules[name]
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    target = tmp_path / ARCHIVE_NAME
    write_cluster_zip(target)
    return target


def modules_in(archive: Path) -> list[str]:
    with zipfile.ZipFile(archive) as opened:
        names = [Path(name) for name in opened.namelist()]
    return [
        ".".join(each.parent.parts if each.stem == "__init__" else each.with_suffix("").parts)
        for each in names
    ]


def test_every_module_imports_from_the_zip_alone(archive: Path, tmp_path: Path) -> None:
    modules = modules_in(archive)
    assert {"tallystick", "tallystick.domain.batches.landing", "tallystick.spark.landing"} <= set(
        modules
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BARE, str(archive), *modules],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{module} tallystick" for module in modules]


@pytest.mark.parametrize("job", ["search.py", "land.py", "scrub.py"])
def test_a_job_imports_nothing_of_the_package_that_does_not_travel(archive: Path, job: str) -> None:
    source = (ROOT / "spark_jobs" / job).read_text()
    imported = {
        line.split()[1]
        for line in source.splitlines()
        if line.strip().startswith("from tallystick")
    }
    assert imported
    assert imported <= set(modules_in(archive))


def test_the_same_sources_give_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    write_cluster_zip(again)

    assert again.read_bytes() == archive.read_bytes()


def test_nothing_is_left_beside_the_archive_and_an_old_one_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / ARCHIVE_NAME
    target.write_bytes(b"old")
    write_cluster_zip(target)

    assert [each.name for each in tmp_path.iterdir()] == [ARCHIVE_NAME]
    assert zipfile.is_zipfile(target)
