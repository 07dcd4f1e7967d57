"""Pages of reports: what may go, by their names alone."""

from __future__ import annotations

from datetime import UTC, datetime

from tallystick.domain.report.document import KEPT_FOR, perhaps_thinned

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
OLD = ["20261101T070000Z.html", "20261101T080000Z.html", "20261101T230000Z.html"]
RECENT = ["20261102T000000Z.html", "20261102T010000Z.html", "20261130T110000Z.html"]


def test_old_pages_may_go_but_the_last_of_their_day() -> None:
    assert datetime(2026, 11, 2, 12, tzinfo=UTC) == NOW - KEPT_FOR
    assert perhaps_thinned([*OLD, *RECENT, "notes.html", "20261101T070000Z"], NOW) == OLD[:2]
