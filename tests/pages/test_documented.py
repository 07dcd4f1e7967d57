"""docs/page.md names every field of every answer."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.ledger.batches import Replaced
from tallystick.ledger.history import RecentRun, WaiverStep
from tallystick.ledger.overview import BatchHead, ReportHead, RunHead
from tallystick.report.documents import ExplainDocument, Part
from tallystick.web import answers
from tests.support.repository import DOCS

ANSWERS: list[type] = [
    BatchHead,
    Replaced,
    FeedInFile,
    RecentRun,
    WaiverStep,
    ReportHead,
    RunHead,
    *(
        each
        for each in vars(answers).values()
        if isinstance(each, type) and issubclass(each, Part)
        if each.__module__ == answers.__name__
    ),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda each: each.__name__)
def test_every_field_is_documented(answer: type) -> None:
    named = set(re.findall(r"`(\w+)`", (DOCS / "page.md").read_text()))
    explained = {each.name for each in fields(ExplainDocument)}

    assert not {each.name for each in fields(answer)} - named - explained
