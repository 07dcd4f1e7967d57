"""Feed files and DAG files that Airflow could not read, by its own record of import errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Final

from airflow.models.errors import ParseImportError
from airflow.utils.session import create_session
from fastapi.concurrency import run_in_threadpool

from tallystick.domain.identities import FeedName

_OUR_FILES: Final = ("tallystick_feeds.py", "feed_problems.py")
_PROBLEM: Final = re.compile(r"(?:^|[/\s])(?P<feed>[\w-]+)\.ya?ml(?::\d+)?: .+$")

Broken = Mapping[FeedName | None, Sequence[str]]
"""By feed, what is wrong in its file, a line each; by None, why no feed is read."""


async def broken_files() -> Broken:
    """What stands in the import errors that are about feeds."""
    return await run_in_threadpool(_broken_files)


def _broken_files() -> Broken:
    with create_session() as session:
        rows = session.query(ParseImportError.filename, ParseImportError.stacktrace).all()
    found: dict[FeedName | None, list[str]] = {}
    for filename, text in rows:
        lines = (text or "").strip().splitlines()
        begins = [n for n, each in enumerate(lines) if "FeedFileInvalid: " in each]
        for each in lines[begins[-1] :] if begins else ():
            if problem := _PROBLEM.search(each):
                told = each.partition("FeedFileInvalid: ")[2] or each
                # No feed's name begins so: the file is of all feeds.
                is_of_all = problem["feed"].startswith("_")
                feed = None if is_of_all else FeedName(problem["feed"])
                found.setdefault(feed, []).append(told)
        if lines and not begins and PurePath(filename or "").name in _OUR_FILES:
            found.setdefault(None, []).append(f"{filename}: {lines[-1]}")
    return found
