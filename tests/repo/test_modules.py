"""How the code is cut: sizes, names, and what the lower floors may import."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.support.repository import ROOT, tracked_files, tracked_lines, tracked_modules

MOST_LINES = 500
VAGUE = {"utils", "util", "helpers", "helper", "manager", "common", "base", "core", "misc"}
HEAVY = {"pyspark", "pandas", "pyarrow", "numpy", "confluent_kafka", "kafka", "psycopg", "hdfs"}

# What the sandbox, the package and the DAG files are called must never hide a library.
PROGRAM_FOLDERS = ("plugins", "sandbox", "dags", "spark_jobs", "bench")


def _names_of(path: Path) -> set[str]:
    """The module's own name and those of the packages around it."""
    names = {*path.parts[:-1], path.stem} - {"__init__", "__main__", "plugins"}
    return {name for name in names if not name.startswith(".")}


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    lengths = {path: (ROOT / path).read_text().count("\n") for path in tracked_modules()}

    assert not {path: length for path, length in lengths.items() if length > MOST_LINES}


def test_no_module_has_a_vague_name() -> None:
    assert not [path for path in tracked_modules() if _names_of(path) & VAGUE]


def test_no_top_level_name_hides_a_library() -> None:
    # Airflow runs files below plugins/ and dags/ by their bare stems.
    libraries = set(sys.stdlib_module_names) | set(packages_distributions())
    tops = {
        path.parts[1] if path.parts[0] == "plugins" else path.parts[0]
        for path in tracked_modules()
        if path.parts[0] in PROGRAM_FOLDERS
    }
    stems = {path.stem for path in tracked_modules() if path.parts[0] in ("dags", "spark_jobs")}

    assert not ({name.removesuffix(".py") for name in tops} | stems) & libraries


def test_no_module_of_the_package_bears_a_library_name() -> None:
    libraries = set(sys.stdlib_module_names) | set(packages_distributions())
    modules = [path for path in tracked_modules() if path.parts[:2] == ("plugins", "tallystick")]

    assert not [path for path in modules if (_names_of(path) - {"tallystick"}) & libraries]


def test_one_module_alone_asks_airflow_for_what_3_1_has_elsewhere() -> None:
    moved = re.compile(r"airflow\.sdk\.(exceptions|configuration)|import .*Cron\w+Timetable")
    places = [
        place
        for place, line in tracked_lines()
        if place.startswith("plugins/") and moved.search(line) and "airflow_releases" not in line
    ]

    assert {place.partition(":")[0] for place in places} == {
        "plugins/tallystick/orchestration/airflow_releases.py"
    }


def test_airflow_runs_no_module_of_the_package_as_a_plugin() -> None:
    assert (ROOT / "plugins" / ".airflowignore").read_text().split() == ["tallystick/**"]


def _imports_of(path: Path, *, at_import_time: bool = False) -> Iterator[str]:
    """The dotted names of all modules that the file imports."""
    tree = ast.parse((ROOT / path).read_text())
    for node in tree.body if at_import_time else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "."


def test_the_domain_imports_the_standard_library_and_errors_only() -> None:
    ours = ("tallystick.domain", "tallystick.errors")
    foreign = [
        (str(path), name)
        for path in tracked_modules()
        if path.parts[:3] == ("plugins", "tallystick", "domain")
        for name in _imports_of(path)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith(ours)
    ]

    assert not foreign


@pytest.mark.parametrize(
    "path", [path for path in tracked_modules() if path.parts[0] == "dags"], ids=str
)
def test_a_dag_file_declares_and_imports_nothing_heavy(path: Path) -> None:
    names = {name.split(".")[0] for name in _imports_of(path)}

    assert not names & HEAVY
    assert names <= set(sys.stdlib_module_names) | {"tallystick", "airflow"}
    decides = (ast.If, ast.For, ast.While, ast.Try, ast.FunctionDef, ast.ClassDef)
    body = ast.parse((ROOT / path).read_text()).body
    assert not [node for node in body if isinstance(node, decides)]


def test_no_test_is_skipped_or_expected_to_fail() -> None:
    words = ["pytest." + "skip", "mark." + "skip", "mark." + "xfail", "import" + "orskip"]
    places = [
        place
        for place, line in tracked_lines()
        if place.startswith("tests/") and any(word in line for word in words)
    ]

    assert not places


def test_nothing_is_left_to_be_done() -> None:
    words = ["TO" + "DO", "FIX" + "ME", "NotImplemented" + "Error"]
    code = {".py", ".sql", ".sh", ".yaml", ".yml", ".toml"}
    places = [
        place
        for place, line in tracked_lines()
        if Path(place.rsplit(":", 1)[0]).suffix in code and any(word in line for word in words)
    ]

    assert not places


def test_the_recheck_is_one_short_file_without_a_line_of_ours() -> None:
    path = Path("recheck.py")
    ours = {each.stem for each in (ROOT / "plugins").iterdir()} | {"sandbox", "tests", "bench"}

    assert (ROOT / path).read_text().count("\n") <= 200
    assert not {name.split(".")[0] for name in _imports_of(path)} & ours


def test_the_package_ships_its_type_information() -> None:
    assert Path("plugins/tallystick/py.typed") in tracked_files()
