"""What lies where, and that nothing tracked speaks of the machine it was written on."""

from __future__ import annotations

import re
import socket
import tomllib

import tallystick
from tests.conftest import LONGEST
from tests.support.repository import ROOT, tracked_files, tracked_lines

FOLDERS = {"bench", "dags", "docs", "plugins", "sandbox", "spark_jobs", "tests", ".ci"}
FILES = {
    ".dockerignore",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Dockerfile",
    "LICENSE",
    "SECURITY.md",
    "README.md",
    "docker-compose.yml",
    "pyproject.toml",
    "recheck.py",
    "requirements-kerberos.in",
    "requirements-kerberos.txt",
    "requirements.in",
    "requirements.txt",
    "tallystick",
}

# A path of one machine, or the name of a private index, helps no reader and tells on the writer.
PRIVATE_PATHS = re.compile(r"(?<![\w.}$)/-])/(?:work|root|home|Users|mnt)/[\w.~-]+")
INDEXES = re.compile(r"^\s*(?:--(?:extra-)?index-url|--find-links|-i|-f)\b|<mirror>|<repositor")


def test_the_top_level_holds_what_a_reader_expects_and_nothing_else() -> None:
    tops = {path.parts[0] for path in tracked_files()}

    assert tops <= FOLDERS | FILES
    assert {"README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"} <= tops


def test_each_module_that_is_begun_first_is_there_once() -> None:
    stems = [path.stem for path in tracked_files() if path.parts[0] == "tests"]
    assert [stems.count(each) for each in LONGEST] == [1] * len(LONGEST)


def test_no_tracked_file_names_a_path_of_one_machine() -> None:
    assert not [f"{place}: {line}" for place, line in tracked_lines() if PRIVATE_PATHS.search(line)]


def test_no_tracked_file_names_this_machine() -> None:
    name = socket.gethostname()
    word = re.compile(rf"\b{re.escape(name)}\b")
    # "localhost" and names as short as a word would be found everywhere.
    places = [place for place, line in tracked_lines() if len(name) > 8 and word.search(line)]

    assert name == "localhost" or not places


def test_no_tracked_file_names_a_private_index() -> None:
    files = ("requirements.", "requirements-", "sandbox/poms/", "Dockerfile", "pyproject.toml")
    places = [
        place for place, line in tracked_lines() if place.startswith(files) and INDEXES.search(line)
    ]

    assert not places


def test_nothing_tracked_is_large_or_built() -> None:
    built = {".pyc", ".jar", ".class", ".parquet", ".whl", ".zip", ".log", ".pid"}

    assert not [path for path in tracked_files() if path.suffix in built]
    assert not [path for path in tracked_files() if (ROOT / path).stat().st_size > 300_000]


def test_the_changelog_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert newest
    assert newest[1] == tallystick.__version__ == project["version"]


def test_the_licence_is_the_one_that_is_claimed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    text = (ROOT / "LICENSE").read_text()

    assert project["license"] == "Apache-2.0"
    assert "Apache License" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text


def test_the_scripts_can_be_run() -> None:
    assert (ROOT / "tallystick").stat().st_mode & 0o111
    for each in (ROOT / ".ci").iterdir():
        assert each.stat().st_mode & 0o111, each
