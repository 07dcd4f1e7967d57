"""Answers as HTML: the templates, and the two files that they load."""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from jinja2 import PackageLoader, Template

from tallystick.report.templating import environment, page_asset

ASSETS: Final = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}


def rendered(template: str, below: str, **values: Any) -> str:
    """The page; `below` is its address below the app's own, for its links are relative."""
    up = "../" * (below.count("/") - 1)
    return _template(template).render(up=up, version=_version(), **values)


@cache
def asset_text(name: str) -> str:
    """The file's text; the style is the report's own, with what these pages add."""
    text = (files("tallystick.web") / "page" / name).read_text(encoding="utf-8")
    return page_asset(name) + text if name == "page.css" else text


@cache
def _version() -> str:
    """Another one whenever a file is another: the browser then asks for it again."""
    texts = "".join(asset_text(name) for name in ASSETS)
    return sha256(texts.encode()).hexdigest()[:12]


@cache
def _template(name: str) -> Template:
    made = environment(PackageLoader("tallystick.web", "page"))
    made.filters["json"] = _indented
    return made.get_template(name)


def _indented(value: object) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
