"""A feed file's problems are values: file, line, key, value, what is accepted.

Puts pydantic's and YAML's findings into one form. Never shows the value of an unknown key or of
anything that looks like a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tallystick.settings.feed import Accepted, Feed, FeedFile
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.spark_conf import carries_secret
from tallystick.settings.yaml_lines import KeyPath, YamlDocument

_LONGEST_VALUE: Final = 80


@dataclass(frozen=True, slots=True, order=True)
class FeedProblem:
    """One trouble in one file; its text is one line."""

    file: str
    line: int | None
    """From 1; None when the file could not be read at all."""
    key: str
    """Dotted; empty when it is not about one key."""
    words: str
    """What is wrong, as a clause."""
    value: str | None = None
    """As it was written; None where none was, or it must not be shown."""
    accepted: str | None = None
    nearest: str | None = None
    """The known key that an unknown one resembles most."""

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        subject = f"{self.key}: " if self.key else ""
        shown = "" if self.value is None else f"{self.value} "
        clauses = [f"{place}: {subject}{shown}{self.words}"]
        if self.nearest is not None:
            clauses.append(f"nearest known key: {self.nearest}")
        elif self.accepted is not None:
            clauses.append(f"accepted: {self.accepted}")
        return "; ".join(clauses)


def problems_of_document(document: YamlDocument) -> tuple[FeedProblem, ...]:
    """Returns the problems that YAML itself finds."""
    return tuple(
        FeedProblem(document.file, each.line, dotted(each.path), each.words)
        for each in document.troubles
    )


def model_of(document: YamlDocument) -> type[FeedFile]:
    """Returns what the document declares: a feed, or the feeds of many topics."""
    source = document.values.get("source") if isinstance(document.values, dict) else None
    return FeedGroup if isinstance(source, dict) and "topics" in source else Feed


def problems_of_values(document: YamlDocument, error: ValidationError) -> tuple[FeedProblem, ...]:
    """Returns the problems that the models find, at most one for each key."""
    found: dict[KeyPath, FeedProblem] = {}
    for details in error.errors(include_url=False):
        path = _key_path(details["loc"], model_of(document))
        if details["type"] == "refused_keys":
            for key, reason in details["ctx"]["refusals"].items():
                inner = (*path, key)
                found.setdefault(inner, _refused(document, inner, reason))
        else:
            found.setdefault(path, _problem(document, path, details))
    return tuple(found.values())


def _key_path(location: KeyPath, model: type[BaseModel] | None) -> KeyPath:
    """The place in the file: pydantic's location without the arms of its unions."""
    path: list[str | int] = []
    for step in location:
        path.append(step)
        if isinstance(step, int):  # an item of a list of sections, whose keys come next
            continue
        field = _field(model, step)
        model = field.section if field else None
        if field is not None and model is None and not field.is_mapping:
            path += [each for each in location[len(path) :][:1] if isinstance(each, int)]
            break
    return tuple(path)


def _problem(document: YamlDocument, path: KeyPath, details: ErrorDetails) -> FeedProblem:
    """One of pydantic's errors in our words."""
    key = dotted(path)
    if details["type"] == "extra_forbidden":
        known = _known_keys(path[:-1], model_of(document))
        near = get_close_matches(str(path[-1]), known, n=1)
        return FeedProblem(
            *document.place_of(path),
            key,
            "unknown key",
            accepted=", ".join(known),
            nearest=near[0] if near else None,
        )
    if details["type"] == "missing":
        place = document.place_of(path, is_missing=True)
        return FeedProblem(*place, key, "missing", accepted=_accepted(path, model_of(document)))
    reason = str(details["msg"]) if details["type"] == "refused" else ""
    if details["type"] == "string_type" and path in document.texts:
        reason = "it does not read as text, put it in quotes"
    return _refused(document, path, reason)


def _refused(document: YamlDocument, path: KeyPath, reason: str) -> FeedProblem:
    words = "is not accepted" + (f": {reason}" if reason else "")
    value = _shown_value(document, path)
    accepted = _accepted(path, model_of(document))
    return FeedProblem(*document.place_of(path), dotted(path), words, value, accepted)


def _shown_value(document: YamlDocument, path: KeyPath) -> str:
    """The value as it was written, shortened; stars for a secret."""
    value: Any = document.values
    for step in path:
        value = value[step]
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "nothing"
    text = document.texts.get(path, str(value))
    if carries_secret(str(path[-1]) if path else "", text):
        return "'***'"
    if len(text) > _LONGEST_VALUE:
        text = text[: _LONGEST_VALUE - 3] + "..."
    return repr(text) if isinstance(value, str) else text


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    section: type[BaseModel] | None
    is_mapping: bool
    accepted: str | None


def _field(model: type[BaseModel] | None, key: object) -> _Field | None:
    return next((each for each in _fields(model) if each.name == key), None)


def _fields(model: type[BaseModel] | None) -> Iterator[_Field]:
    """The model's fields under the names that a file uses."""
    for name, info in (model.model_fields if model else {}).items():
        kind: Any = info.annotation
        if get_origin(kind) is tuple:
            kind = get_args(kind)[0]
        is_section = isinstance(kind, type) and issubclass(kind, BaseModel)
        # What a field accepts beside None stands at the arm of its union.
        arms = [each for arm in get_args(kind) for each in getattr(arm, "__metadata__", ())]
        told = (each.words for each in (*info.metadata, *arms) if isinstance(each, Accepted))
        words = next(told, None)
        yield _Field(
            info.alias or name,
            kind if is_section else None,
            name in ("conf", "arguments", "labels"),
            words or ("a section of keys" if is_section else None),
        )


def _known_keys(path: KeyPath, model: type[BaseModel] | None) -> list[str]:
    """The keys that the section at this path may have."""
    for step in path:
        if isinstance(step, str):
            field = _field(model, step)
            model = field.section if field else None
    return [each.name for each in _fields(model)]


def _accepted(path: KeyPath, model: type[BaseModel] | None) -> str | None:
    """Says what the field at this path accepts, in its own words; a Spark property has none."""
    found: _Field | None = None
    for step in path:
        if found is not None and found.is_mapping:
            return None
        if isinstance(step, int):
            continue
        found = _field(model, step)
        model = found.section if found else None
    return found.accepted if found else "a mapping of keys, as in dags/feeds/orders.yaml"


def dotted(path: KeyPath) -> str:
    """The key as people write it."""
    return ".".join(str(step) for step in path)
