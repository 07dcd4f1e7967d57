"""The repository as a reader finds it: tracked files, modules and documents."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@cache
def tracked_files() -> tuple[Path, ...]:
    """Every file under version control that is there, relative to the repository's root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = (Path(name) for name in listed.stdout.split("\0") if name)
    return tuple(path for path in paths if (ROOT / path).is_file())


def tracked_modules() -> tuple[Path, ...]:
    """The Python files among them."""
    return tuple(path for path in tracked_files() if path.suffix == ".py")


def tracked_lines() -> Iterator[tuple[str, str]]:
    """Every line of every text file, with its place as `path:number`."""
    for path in tracked_files():
        try:
            text = (ROOT / path).read_text()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            yield f"{path}:{number}", line


def said_by_new_python(code: str) -> str:
    """The last line that a new Python says, which finds our package and has imported nothing."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "plugins")},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.splitlines()[-1]


def sections_of(document: Path, *, level: int) -> Mapping[str, str]:
    """The text under each heading of one level, by heading; a heading twice is an error."""
    mark = "#" * level
    sections: dict[str, str] = {}
    heading: str | None = None
    for line in document.read_text().splitlines():
        found = re.fullmatch(r"(#+) (.+)", line)
        if found and found[1] == mark:
            heading = found[2]
            if heading in sections:
                raise ValueError(f"{document} has two headings {heading!r}")
            sections[heading] = ""
        elif found and len(found[1]) < level:
            heading = None
        elif heading is not None:
            sections[heading] += line + "\n"
    return sections


def commands_in(document: Path, start: str) -> tuple[str, ...]:
    """The indented command lines that begin so, continued lines joined, in their order."""
    text = document.read_text().replace("\\\n", " ")
    return tuple(line.strip() for line in text.splitlines() if line.startswith(f"    {start} "))


def blocks_in(document: Path) -> tuple[str, ...]:
    """The indented blocks of a document, without their indentation, in their order."""
    found = re.findall(r"^\n((?:    .*\n|\n(?=    ))+)", document.read_text(), re.MULTILINE)
    return tuple(re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in found)
