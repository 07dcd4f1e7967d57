"""Reads the folder of feed files: every feed that is right, and everything that is wrong.

One broken file never hides the others' feeds or the others' problems. Light on purpose: Airflow's
DAG processor runs this every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from pydantic import ValidationError

from tallystick.errors import ConfigurationError, FeedFileInvalid, FeedUnknown
from tallystick.settings.feed import Feed
from tallystick.settings.problems import FeedProblem, problems_of_document, problems_of_values
from tallystick.settings.yaml_lines import KeyPath, YamlDocument, parse

FOLDER_VARIABLE: Final = "TALLYSTICK_FEEDS"
DEFAULT_FOLDER: Final = Path(__file__).resolve().parents[3] / "dags" / "feeds"
_SUFFIXES: Final = (".yaml", ".yml")
_FEW: Final = 12
_VERBATIM: Final = (("spark", "conf"),)
_Place: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FeedFolder:
    """A folder holds feed files."""

    feeds: Mapping[str, Feed]
    """By name, sorted; only those whose files are right."""
    problems: Sequence[FeedProblem]
    """In the order of files and lines."""


def feeds_folder(environ: Mapping[str, str]) -> Path:
    """The folder that TALLYSTICK_FEEDS names, else the checkout's dags/feeds.

    Raises ConfigurationError where the package was installed without a checkout around it.
    """
    named = environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser()
    if not DEFAULT_FOLDER.is_dir():
        raise ConfigurationError(FOLDER_VARIABLE, None, "the path of the folder of feed files")
    return DEFAULT_FOLDER


Further: TypeAlias = Callable[[Feed], Iterable[tuple[KeyPath, str, str]]]
"""A check that needs more than the file: key, what is wrong with it, what is accepted."""


def _no_further(_: Feed) -> Iterable[tuple[KeyPath, str, str]]:
    return ()


def read_feeds(folder: Path, further: Further = _no_further) -> FeedFolder:
    """All feeds and all problems; raises ConfigurationError if there is no such folder."""
    feeds: dict[str, Feed] = {}
    paths: dict[str, Path] = {}
    problems: list[FeedProblem] = []
    for path in _feed_files(folder):
        found = _read_file(path)
        if not isinstance(found, Feed):
            problems.extend(found)
        elif wrong := list(further(found)):
            problems.extend(_further_problems(path, wrong))
        elif found.name in feeds:
            words = "is not accepted: another file of this folder declares the feed already"
            problems.append(FeedProblem(shown_path(path), 1, "feed", words, repr(found.name)))
        else:
            feeds[found.name], paths[found.name] = found, path
    owners = _owners(feeds.values())
    nested = [_nested(paths[each.name], each, owners) for each in feeds.values()]
    inside = {name: problem for name, problem in zip(feeds, nested, strict=True) if problem}
    return FeedFolder(
        {name: feed for name, feed in feeds.items() if name not in inside},
        sorted([*problems, *inside.values()], key=lambda each: each.file),
    )


def load_feed(folder: Path, name: str) -> Feed:
    """The feed of that name, whatever is wrong with the others.

    Raises FeedFileInvalid for its own file, FeedUnknown when there is none of that name.
    """
    found = feed_as_written(folder, name)
    others = (each for each in map(_read_file, _feed_files(folder)) if isinstance(each, Feed))
    nested = _nested(feed_file(folder, name), found, _owners(others))
    if nested:
        raise FeedFileInvalid([str(nested)])
    return found


def feed_as_written(folder: Path, name: str) -> Feed:
    """The feed as its own file says, which is the only one that is read; raises as `load_feed`.

    For who knows that the folder was read before: nobody compares the feed with the others.
    """
    found = _read_file(feed_file(folder, name))
    if not isinstance(found, Feed):
        raise FeedFileInvalid([str(each) for each in found])
    return found


def _owners(feeds: Iterable[Feed]) -> Mapping[_Place, str]:
    """Returns the feed that lands in each connection and directory."""
    return {
        (each.target.connection, f"{each.target.root}/{each.name}"): each.name for each in feeds
    }


def _nested(path: Path, feed: Feed, owners: Mapping[_Place, str]) -> FeedProblem | None:
    """The problem of a root in which another feed lands: its readers would find this feed's rows.

    Other connections may be other file systems, so only feeds with the same one are compared.
    """
    root, connection = PurePosixPath(feed.target.root), feed.target.connection
    above = map(str, (root, *root.parents))
    directory = next((each for each in above if (connection, each) in owners), None)
    if directory is None:
        return None
    document = parse(path.read_bytes(), verbatim=_VERBATIM)
    return FeedProblem(
        shown_path(path),
        document.line_of(("target", "root")),
        "target.root",
        f"is not accepted: it lies where feed {owners[connection, directory]} lands",
        repr(feed.target.root),
        f"a directory outside of {directory}",
    )


def feed_names(folder: Path) -> list[str]:
    """The names of all feeds that have a file, right or wrong; raises as `read_feeds` does."""
    return [path.stem for path in _feed_files(folder)]


def feed_file(folder: Path, name: str) -> Path:
    """The file that declares the feed; raises as `load_feed` does, and reads nothing."""
    mine = [path for path in _feed_files(folder) if path.stem == name]
    if not mine:
        names = feed_names(folder)
        raise FeedUnknown("the feed's name", name, _others(name, names), where=shown_path(folder))
    if len(mine) > 1:
        words = f"{shown_path(mine[0])} declares the same feed: keep one of them"
        raise FeedFileInvalid([f"{shown_path(mine[1])}: {words}"])
    return mine[0]


def _further_problems(
    path: Path, wrong: Iterable[tuple[KeyPath, str, str]]
) -> Iterator[FeedProblem]:
    document = parse(path.read_bytes(), verbatim=_VERBATIM)
    for key, words, accepted in wrong:
        shown = document.texts.get(key)
        dotted = ".".join(map(str, key))
        line = document.line_of(key)
        yield FeedProblem(shown_path(path), line, dotted, words, shown and repr(shown), accepted)


def _others(name: str, names: Sequence[str]) -> str:
    """The names that resemble a wrong one, and all of them while they are few."""
    if not names:
        return "the folder holds no feed file"
    near = ", ".join(get_close_matches(name, names, n=3))
    there = ", ".join(names) if len(names) <= _FEW else f"{len(names)} others"
    return (f"nearest: {near}; " if near else "") + f"there are: {there}"


def _feed_files(folder: Path) -> list[Path]:
    """The feed files, sorted by name; hidden files and other kinds are none."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise ConfigurationError(
            f"the folder of feeds ({FOLDER_VARIABLE})",
            str(folder),
            "a folder of YAML files",
            where=error.strerror or type(error).__name__,
        ) from error
    return [path for path in entries if path.suffix in _SUFFIXES and not path.name.startswith(".")]


def _read_file(path: Path) -> Feed | Sequence[FeedProblem]:
    """The feed, or why it is none."""
    file = shown_path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        return [FeedProblem(file, None, "", f"it can't be read: {error.strerror}")]
    document = parse(content, verbatim=_VERBATIM)
    problems = list(problems_of_document(file, document))
    if problems and document.values is None:
        return problems
    feed: Feed | None = None
    try:
        feed = Feed.model_validate(document.values)
    except ValidationError as error:
        told = tuple(f"{each.key}." for each in problems)
        problems += [
            each
            for each in problems_of_values(file, document, error)
            if not f"{each.key}.".startswith(told)
        ]
    misnamed = _misnamed(file, path.stem, document)
    if misnamed and all(each.key != "feed" for each in problems):
        problems.append(misnamed)
    return feed if feed and not problems else sorted(problems, key=_place)


def _misnamed(file: str, stem: str, document: YamlDocument) -> FeedProblem | None:
    """The problem of a file that declares a feed of another name."""
    name = document.values.get("feed") if isinstance(document.values, dict) else None
    if not isinstance(name, str) or name == stem:
        return None
    words = "is not accepted: a feed bears its file's name"
    return FeedProblem(file, document.line_of(("feed",)), "feed", words, repr(name), stem)


def _place(problem: FeedProblem) -> tuple[int, str]:
    return problem.line or 0, problem.key


def shown_path(path: Path) -> str:
    """The path for a person: relative to where they stand if it is below."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
