"""YAML with its places: the values of a document, and in which file and line each key stands.

Refuses what YAML allows and a settings file never needs: a key given twice, anchors that are used
again, custom tags, several documents. Decides nothing about what the values mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

import yaml

KeyPath: TypeAlias = tuple[str | int, ...]
Place: TypeAlias = tuple[str, int]
"""A file, and a line from 1."""

# libyaml's parser where the wheel has it: ten times as fast, and Airflow reads feeds all the time.
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN_TAGS: Final = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("map", "seq", "str", "int", "float", "bool", "null", "timestamp", "merge", "value")
)
_DEEPEST: Final = 20
_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_NULL_TAG: Final = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class YamlTrouble:
    """The text can't be read, for this reason, at this place."""

    line: int | None
    """From 1; None when there is no text."""
    path: KeyPath
    """Empty when it is not about one key."""
    words: str


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document: its values, and where they stand."""

    file: str
    values: object
    places: Mapping[KeyPath, Place] = field(default_factory=dict)
    """Of each key; of the first item's dash for a list."""
    texts: Mapping[KeyPath, str] = field(default_factory=dict)
    """Scalars exactly as they were written, without quotes."""
    troubles: tuple[YamlTrouble, ...] = ()

    def place_of(self, path: KeyPath, *, is_missing: bool = False) -> Place:
        """Place of the key, or of the nearest parent that is there; else the document's first line.

        A missing key is missing in the document's own file, whatever lies under it.
        """
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place and (place[0] == self.file or not is_missing):
                return place
        return self.file, 1

    def over(self, other: YamlDocument) -> YamlDocument:
        """Both in one, with the places of both: this document's own keys win.

        Mappings are merged key by key; all else takes the other's place. A null takes away what the
        other one says.
        """
        replaced: list[KeyPath] = []
        values = _merged(self.values, other.values, (), replaced)

        def stays(path: KeyPath) -> bool:
            return not any(path[: len(each)] == each for each in replaced)

        places = {path: place for path, place in other.places.items() if stays(path)}
        texts = {path: text for path, text in other.texts.items() if stays(path)}
        return replace(
            self, values=values, places={**places, **self.places}, texts={**texts, **self.texts}
        )


def _merged(mine: object, other: object, path: KeyPath, replaced: list[KeyPath]) -> object:
    if not isinstance(mine, dict) or not isinstance(other, dict):
        replaced.append(path)
        return mine
    found = dict(other)
    for key, value in mine.items():
        if key not in other:
            found[key] = value
        elif value is None:
            replaced.append((*path, key))
            del found[key]
        else:
            found[key] = _merged(value, other[key], (*path, key), replaced)
    return found


def parse(file: str, content: bytes, *, verbatim: Collection[KeyPath] = ()) -> YamlDocument:
    """The document. Scalars below a path in `verbatim` stay text, as they were written.

    Never raises: what could not be read is in `troubles`, and then `values` may be incomplete.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return _unreadable(file, line, "it is not UTF-8")
    loader = None
    try:
        if _is_too_deep(text):
            return _unreadable(file, 1, "it is nested too deeply")
        loader = _LOADER(text)
        node = loader.get_single_node()
        if node is None:
            return _unreadable(file, 1, "it is empty")
        return _Walk(file, loader, frozenset(verbatim)).document(node)
    except yaml.YAMLError as error:
        return _unreadable(file, *_syntax_trouble(text, error))
    finally:
        if loader is not None:
            loader.dispose()


def _unreadable(file: str, line: int, words: str) -> YamlDocument:
    return YamlDocument(file, None, troubles=(YamlTrouble(line, (), words),))


def _is_too_deep(text: str) -> bool:
    """True beyond what any settings need; composing nodes recurses, in libyaml without a bound."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            return True
    return False


def _syntax_trouble(text: str, error: yaml.YAMLError) -> tuple[int, str]:
    """The parser's line and words."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        words = f"it is no YAML: {error.problem or error.context}"
        if "alias" in (error.context or ""):
            words += " (a value that begins with * needs quotes)"
        return line, words
    if isinstance(error, yaml.reader.ReaderError):
        line = text.count("\n", 0, error.position) + 1
        return line, f"it is no YAML: {error.reason}"
    return 1, f"it is no YAML: {error}"


class _Walk:
    """One pass over the nodes of a document."""

    def __init__(self, file: str, loader: Any, verbatim: frozenset[KeyPath]) -> None:
        self.file = file
        self.loader = loader
        self.verbatim = verbatim
        self.seen: set[int] = set()
        self.places: dict[KeyPath, Place] = {}
        self.texts: dict[KeyPath, str] = {}
        self.troubles: list[YamlTrouble] = []

    def document(self, node: yaml.Node) -> YamlDocument:
        values = self.value(node, ())
        return YamlDocument(self.file, values, self.places, self.texts, tuple(self.troubles))

    def value(self, node: yaml.Node, path: KeyPath) -> object:
        if node.tag not in _PLAIN_TAGS:
            self.refuse(node, path, f"the tag {node.tag!r} is not accepted")
            return None
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, path)
        if id(node) in self.seen:
            self.refuse(node, path, "an anchor that is used again is not accepted: write it out")
            return None
        self.seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, index)) for index, each in enumerate(node.value)]
        return dict(self.items(node, path))

    def items(self, node: yaml.Node, path: KeyPath) -> Iterator[tuple[str, object]]:
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self.refuse(key_node, path, "a key must be a plain word")
                continue
            key = key_node.value
            inner = (*path, key)
            if inner in self.places:
                words = f"given twice, first on line {self.places[inner][1]}"
                self.troubles.append(YamlTrouble(key_node.start_mark.line + 1, inner, words))
                continue
            self.places[inner] = (self.file, key_node.start_mark.line + 1)
            yield key, self.value(value_node, inner)

    def scalar(self, node: yaml.ScalarNode, path: KeyPath) -> object:
        self.texts[path] = node.value
        is_verbatim = any(path[: len(each)] == each for each in self.verbatim)
        if node.tag == _TEXT_TAG or (is_verbatim and node.tag != _NULL_TAG):
            return node.value
        try:
            return self.loader.construct_object(node)
        except (ValueError, yaml.constructor.ConstructorError):
            return node.value  # such as 2026-13-45: it only looks like a date

    def refuse(self, node: yaml.Node, path: KeyPath, words: str) -> None:
        line = self.places[path][1] if path in self.places else node.start_mark.line + 1
        self.troubles.append(YamlTrouble(line, path, words))
