"""Templates whose texts are always escaped, and free of what can't be seen."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import BaseLoader, Environment, StrictUndefined
from markupsafe import Markup

from tallystick.report.safe_text import visible_lines
from tallystick.report.wording import (
    duration_text,
    extent_text,
    grouped,
    instant_text,
    interval_text,
    place_text,
    places_text,
    troubles_text,
)


def environment(loader: BaseLoader | None = None) -> Environment:
    """Makes templates; they have our words for numbers, instants and places."""
    made = Environment(
        loader=loader,
        autoescape=True,
        finalize=_harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["instant"] = instant_text
    made.filters["grouped"] = grouped
    made.filters["duration"] = duration_text
    made.filters["place"] = place_text
    made.filters["extent"] = extent_text
    made.filters["places"] = places_text
    made.globals["interval"] = interval_text
    made.globals["troubles_text"] = troubles_text
    return made


@cache
def page_asset(name: str) -> str:
    """The text of a file of the report's page: pages beside it show the same things."""
    return (files("tallystick.report") / "page" / name).read_text(encoding="utf-8")


def _harmless(value: object) -> object:
    """Takes out of a text what can't be seen; it is escaped after this."""
    is_text = isinstance(value, str) and not isinstance(value, Markup)
    return visible_lines(str(value)) if is_text else value
