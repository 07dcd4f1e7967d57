"""The schema that people read is the one that the migrations make."""

from __future__ import annotations

from tests.support.ledger_story import LedgerStory
from tests.support.schema_dump import SCHEMA, schema_text


def test_schema_sql_is_todays_schema(story: LedgerStory) -> None:
    assert SCHEMA.read_text() == schema_text(story.dsn), (
        "write it anew: python -m tests.support.schema_dump"
    )
