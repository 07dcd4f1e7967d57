"""Reads the folder of feed files: every feed that is right, and everything that is wrong.

1. One broken file never hides the others' feeds or the others' problems.
2. What `_defaults.yaml` says, every feed's file says that does not say otherwise. Where it is wrong
   by itself there is no feed, and only that is told.
3. Light on purpose: Airflow's DAG processor runs this every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from pydantic import ValidationError

from tallystick.errors import ConfigurationError, FeedFileInvalid, FeedUnknown
from tallystick.settings.feed import Feed, FeedFile
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.group_names import OF_GROUP, group_of
from tallystick.settings.problems import (
    FeedProblem,
    dotted,
    model_of,
    problems_of_document,
    problems_of_values,
)
from tallystick.settings.yaml_lines import KeyPath, YamlDocument, YamlTrouble, parse

FOLDER_VARIABLE: Final = "TALLYSTICK_FEEDS"
DEFAULT_FOLDER: Final = Path(__file__).resolve().parents[3] / "dags" / "feeds"
_SUFFIXES: Final = (".yaml", ".yml")
_FEW: Final = 12
_VERBATIM: Final = (("spark", "conf"), ("labels",))
_DEFAULTS: Final = "_defaults"
_Place: TypeAlias = tuple[str, str]
_Defaults: TypeAlias = YamlDocument | Sequence[FeedProblem]
"""What all feeds of a folder say; or why nobody knows, and then there is no feed."""


@dataclass(frozen=True, slots=True)
class FeedFolder:
    """A folder holds feed files."""

    feeds: Mapping[str, Feed]
    """By name, sorted; only those whose files are right."""
    groups: Mapping[str, FeedGroup]
    """Likewise: files whose feeds are as many as there are topics that match."""
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


Further: TypeAlias = Callable[[FeedFile], Iterable[tuple[KeyPath, str, str]]]
"""A check that needs more than the file: key, what is wrong with it, what is accepted."""


def _no_further(_: FeedFile) -> Iterable[tuple[KeyPath, str, str]]:
    return ()


def read_feeds(folder: Path, further: Further = _no_further) -> FeedFolder:
    """All feeds and all problems; raises ConfigurationError if there is no such folder."""
    feeds: dict[str, FeedFile] = {}
    paths: dict[str, Path] = {}
    defaults = _read_defaults(folder)
    problems = [] if isinstance(defaults, YamlDocument) else list(defaults)
    for path in _feed_files(folder):
        found = _read_file(path, defaults)
        if not isinstance(found, FeedFile):
            problems.extend(found)
        elif wrong := list(further(found)):
            problems.extend(_further_problems(_parsed(path, defaults), wrong))
        elif found.name in feeds:
            words = "is not accepted: another file of this folder declares the feed already"
            problems.append(FeedProblem(shown_path(path), 1, "feed", words, repr(found.name)))
        else:
            feeds[found.name], paths[found.name] = found, path
    owners = _owners(feeds.values())
    nested = [_nested(paths[each.name], defaults, each, owners) for each in feeds.values()]
    inside = {name: problem for name, problem in zip(feeds, nested, strict=True) if problem}
    right = [feed for name, feed in feeds.items() if name not in inside]
    return FeedFolder(
        {each.name: each for each in right if isinstance(each, Feed)},
        {each.name: each for each in right if isinstance(each, FeedGroup)},
        # What stands in the defaults is one problem, however many feeds have it.
        sorted(dict.fromkeys([*problems, *inside.values()]), key=lambda each: each.file),
    )


def load_feed(folder: Path, name: str) -> Feed:
    """The feed of that name, whatever is wrong with the others.

    Raises FeedFileInvalid for its own file, FeedUnknown when there is none of that name.
    """
    found, defaults = file_as_written(folder, group_of(name)), _read_defaults(folder)
    read = (_read_file(each, defaults) for each in _feed_files(folder))
    others = [each for each in read if isinstance(each, FeedFile)]
    nested = _nested(feed_file(folder, name), defaults, found, _owners(others))
    if nested:
        raise FeedFileInvalid([str(nested)])
    if isinstance(found, FeedGroup):
        return found.feed(name, _named(others))
    if name != found.name:
        raise FeedUnknown("the feed's name", name, found.name, where=shown_path(folder))
    return found


def file_as_written(folder: Path, name: str) -> Feed | FeedGroup:
    """What the file of that name says with the defaults, and no other file; raises as `load_feed`.

    For who knows that the folder was read before: nobody compares it with the others.
    """
    found = _read_file(feed_file(folder, name), _read_defaults(folder))
    if not isinstance(found, Feed | FeedGroup):
        raise FeedFileInvalid([str(each) for each in found])
    return found


def feeds_of_group(folder: Path, group: FeedGroup, topics: Iterable[str]) -> list[str]:
    """The group's feeds among the cluster's topics, without those that another file names."""
    return group.feeds_among(topics, _named(read_feeds(folder).feeds.values()))


def _named(feeds: Iterable[FeedFile]) -> Collection[str]:
    """The topics that files name, each of which is that file's."""
    return {each.source.topic for each in feeds if isinstance(each, Feed)}


def inherited(folder: Path, name: str) -> Mapping[str, str]:
    """The keys that a right feed has from the defaults, dotted, each with its file and line."""
    document = _parsed(feed_file(folder, name), _read_defaults(folder))
    return {
        dotted(path): f"{file}:{line}"
        for path, (file, line) in document.places.items()
        if file != document.file
        # A section is told by its keys, a list as a whole.
        and not any(isinstance(step, int) for step in path)
        and not any(each[:-1] == path and isinstance(each[-1], str) for each in document.places)
    }


def _owners(feeds: Iterable[FeedFile]) -> Mapping[_Place, str]:
    """Returns the feed that lands in each connection and directory; of a group how those begin."""
    return {
        (
            each.target.connection,
            f"{each.target.root}/{each.name}{OF_GROUP if isinstance(each, FeedGroup) else ''}",
        ): each.name
        for each in feeds
    }


def _nested(
    path: Path, defaults: _Defaults, feed: FeedFile, owners: Mapping[_Place, str]
) -> FeedProblem | None:
    """The problem of a root in which another feed lands: its readers would find this feed's rows.

    Other connections may be other file systems, so only feeds with the same one are compared.
    """
    root, connection = PurePosixPath(feed.target.root), feed.target.connection
    above = [
        str(each.parent / f"{group_of(each.name)}{end}")
        for each in (root, *root.parents)
        for end in ([OF_GROUP] if OF_GROUP in each.name else [""])
    ]
    directory = next((each for each in above if (connection, each) in owners), None)
    if directory is None:
        return None
    return FeedProblem(
        *_parsed(path, defaults).place_of(("target", "root")),
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
    mine = [path for path in _feed_files(folder) if path.stem == group_of(name)]
    if not mine:
        names = feed_names(folder)
        raise FeedUnknown("the feed's name", name, _others(name, names), where=shown_path(folder))
    if len(mine) > 1:
        words = f"{shown_path(mine[0])} declares the same feed: keep one of them"
        raise FeedFileInvalid([f"{shown_path(mine[1])}: {words}"])
    return mine[0]


def _further_problems(
    document: YamlDocument, wrong: Iterable[tuple[KeyPath, str, str]]
) -> Iterator[FeedProblem]:
    for key, words, accepted in wrong:
        shown = document.texts.get(key)
        place = document.place_of(key)
        yield FeedProblem(*place, dotted(key), words, shown and repr(shown), accepted)


def _others(name: str, names: Sequence[str]) -> str:
    """The names that resemble a wrong one, and all of them while they are few."""
    if not names:
        return "the folder holds no feed file"
    near = ", ".join(get_close_matches(name, names, n=3))
    there = ", ".join(names) if len(names) <= _FEW else f"{len(names)} others"
    return (f"nearest: {near}; " if near else "") + f"there are: {there}"


def _feed_files(folder: Path) -> list[Path]:
    """The feed files, sorted by name; hidden files, other kinds and the defaults are none."""
    return [path for path in _yaml_files(folder) if path.stem != _DEFAULTS]


def _yaml_files(folder: Path) -> list[Path]:
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


def _read_defaults(folder: Path) -> _Defaults:
    """What all feeds of the folder say, or what is wrong with that."""
    paths = [path for path in _yaml_files(folder) if path.stem == _DEFAULTS]
    if not paths:
        return YamlDocument("", {})
    document = _parsed(paths[0])
    found = _validated(document)
    wrong = [] if isinstance(found, FeedFile) else found
    problems = [each for each in wrong if _is_of_defaults(each)]
    if isinstance(document.values, dict) and "feed" in document.values:
        words = "is not accepted here: a feed bears its own file's name"
        problems.append(FeedProblem(*document.place_of(("feed",)), "feed", words))
    if paths[1:]:
        words = f"{document.file} has the folder's defaults: keep one of them"
        problems.append(FeedProblem(shown_path(paths[1]), None, "", words))
    return problems or document


def _is_of_defaults(problem: FeedProblem) -> bool:
    """False for a key that the feeds' files have; an item of a list stands in one file whole."""
    return problem.words != "missing" or any(map(str.isdigit, problem.key.split(".")))


def _read_file(path: Path, defaults: _Defaults) -> FeedFile | Sequence[FeedProblem]:
    """The feed or the group, or why it is none."""
    if not isinstance(defaults, YamlDocument):
        return defaults
    document = _parsed(path, defaults)
    found = _validated(document)
    # A default is right by itself: who has it must be told, too.
    problems = [
        each if each.file == document.file else replace(each, words=f"{each.words} ({path.stem})")
        for each in ([] if isinstance(found, FeedFile) else found)
    ]
    misnamed = _misnamed(path.stem, document)
    if misnamed and all(each.key != "feed" for each in problems):
        problems.append(misnamed)
    return found if isinstance(found, FeedFile) and not problems else sorted(problems, key=_place)


def _parsed(path: Path, defaults: _Defaults = ()) -> YamlDocument:
    """What stands in the file, laid over defaults that are right."""
    file = shown_path(path)
    try:
        document = parse(file, path.read_bytes(), verbatim=_VERBATIM)
    except OSError as error:
        trouble = YamlTrouble(None, (), f"it can't be read: {error.strerror}")
        return YamlDocument(file, None, troubles=(trouble,))
    return document.over(defaults) if isinstance(defaults, YamlDocument) else document


def _validated(document: YamlDocument) -> FeedFile | Sequence[FeedProblem]:
    problems = list(problems_of_document(document))
    if problems and document.values is None:
        return problems
    try:
        feed = model_of(document).model_validate(document.values)
    except ValidationError as error:
        told = tuple(f"{each.key}." for each in problems)
        problems += [
            each
            for each in problems_of_values(document, error)
            if not f"{each.key}.".startswith(told)
        ]
        return sorted(problems, key=_place)
    return problems or feed


def _misnamed(stem: str, document: YamlDocument) -> FeedProblem | None:
    """The problem of a file that declares a feed of another name, or one as groups' feeds have."""
    name = document.values.get("feed") if isinstance(document.values, dict) else None
    place = document.place_of(("feed",))
    if isinstance(name, str) and name != stem:
        words = "is not accepted: a feed bears its file's name"
        return FeedProblem(*place, "feed", words, repr(name), stem)
    if OF_GROUP in f"{stem}-":
        words = "is not accepted: '--' stands in names of feeds that a pattern of topics has"
        accepted = "a name without '--' that does not end in '-'"
        return FeedProblem(*place, "feed", words, repr(stem), accepted)
    return None


def _place(problem: FeedProblem) -> tuple[str, int, str]:
    return problem.file, problem.line or 0, problem.key


def shown_path(path: Path) -> str:
    """The path for a person: relative to where they stand if it is below."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
