"""docs/page.md names every field of every answer."""

from __future__ import annotations

import re

import pytest

from tallystick.cli.documents import Part
from tallystick.web import answers
from tests.support.repository import DOCS

ANSWERS = [
    each
    for each in vars(answers).values()
    if isinstance(each, type) and issubclass(each, Part) and each.__module__ == answers.__name__
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: each.__name__)
def test_every_field_is_documented(answer: type[Part]) -> None:
    named = set(re.findall(r"`(\w+)`", (DOCS / "page.md").read_text()))

    assert not set(answer.model_fields) - named
