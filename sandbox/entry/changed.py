"""The tests of what a change touches, by room: the folders of tests mirror those of the package."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from sandbox.entry.console import SetupFailed
from sandbox.entry.layout import ROOT

# Where a part of the package is tested beside the room of its name.
_ALSO: Final = {"cli": "tests/commands", "web": "tests/pages", "ledger": "tests/contract"}
# These compare documents, layout and pins with whatever has changed.
_ALWAYS: Final = "tests/repo"


def changed_files(root: Path = ROOT) -> list[PurePosixPath]:
    """The files that differ from where this branch left `main`, uncommitted ones included."""
    try:
        base = _git(root, "merge-base", "HEAD", "main").strip()
    except subprocess.CalledProcessError:
        base = "HEAD"  # a clone of another branch alone
    try:
        names = _git(root, "diff", "--name-only", "-z", base)
        names += _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    except (OSError, subprocess.CalledProcessError) as failure:
        raise SetupFailed(
            f"git does not say what has changed ({failure}). Next: ./tallystick test unit"
        ) from failure
    return [PurePosixPath(name) for name in names.split("\0") if name]


def rooms_of(changed: list[PurePosixPath], root: Path = ROOT) -> list[str]:
    """The folders and modules of tests for these files; none lies within another."""
    found = {_ALWAYS, *(each for path in changed for each in _rooms_for(path, root))}
    inner = {each for each in found if {str(up) for up in PurePosixPath(each).parents} & found}
    return sorted(found - inner)


def _rooms_for(path: PurePosixPath, root: Path) -> Iterator[str]:
    match path.parts:
        case ("plugins", "tallystick", part, *_):
            within = path.relative_to("plugins/tallystick").parent
            yield from _rooms(root, within)
            if part in _ALSO:
                yield _ALSO[part]
        case ("sandbox", *_):
            yield from _rooms(root, PurePosixPath("sandbox"))
        case ("tests", "support", *_):
            name = ".".join(path.with_suffix("").parts)
            for test in sorted((root / "tests").rglob("test_*.py")):
                if name in test.read_text():
                    yield test.relative_to(root).as_posix()
        case ("tests", *_) if path.suffix == ".py" and (root / path).exists():
            yield str(path if path.name.startswith("test_") else path.parent)


def _rooms(root: Path, within: PurePosixPath) -> Iterator[str]:
    """The innermost room of each family that has one for this folder of the package."""
    for family in (PurePosixPath("tests/unit"), PurePosixPath("tests")):
        rooms = (family / up for up in (within, *within.parents) if up.parts)
        yield from [str(each) for each in rooms if (root / each).is_dir()][:1]


def _git(root: Path, *words: str) -> str:
    run = ["git", "-C", str(root), *words]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout
