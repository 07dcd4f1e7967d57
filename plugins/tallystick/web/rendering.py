"""Answers as HTML: the templates, and the two files that they load."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from fastapi import Request
from jinja2 import ChoiceLoader, PackageLoader, Template

from tallystick.domain.report.troubles import spans_of, troubles_of
from tallystick.orchestration.repair_conf import MOST_NAMED
from tallystick.report.templating import environment, page_asset

ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}


def rendered(template: str, below: str, **values: Any) -> str:
    """The page; `below` is its address below the app's own, for its links are relative."""
    return _template(template).render(up=up_from(below), version=_version(), **values)


def below(request: Request) -> str:
    """The address below the app's own."""
    return request.url.path.removeprefix(request.scope.get("root_path", ""))


def up_from(below: str) -> str:
    """Leads from an address below the app's own up to the app's.

    >>> up_from("/findings/3"), up_from("/")
    ('../', '')
    """
    return "../" * (below.count("/") - 1)


@cache
def asset_text(name: str) -> str:
    """The file's text: the report's own, with what these pages add."""
    text = (files("tallystick.web") / "page" / name).read_text(encoding="utf-8")
    return page_asset("page.css" if name == "page.css" else "plots.js") + text


@cache
def _version() -> str:
    """Another one whenever a file is another: the browser then asks for it again."""
    texts = "".join(asset_text(name) for name in ASSETS)
    return sha256(texts.encode()).hexdigest()[:12]


@cache
def _template(name: str) -> Template:
    ours = (PackageLoader(f"tallystick.{each}", "page") for each in ("web", "report"))
    made = environment(ChoiceLoader(list(ours)))
    made.globals["most_named"] = MOST_NAMED
    made.filters["json"] = _indented
    made.filters["spans"] = spans_of
    made.filters["troubles"] = troubles_of
    return made.get_template(name)


def _indented(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
