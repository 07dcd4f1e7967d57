"""Where a batch lies in HDFS: written and parsed by the same types, proven by a round trip.

1. Staging and readers' directories are on the same file system, so publishing is one rename.
2. No reader's path begins with `_` or `.`: Spark and Hive skip those, so staging does.
3. The ids and the feed's name are checked elsewhere to need no escaping; ':' is illegal in HDFS.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId, BatchId, FeedName

STAGING_NAME: Final = "_staging"
QUARANTINE_NAME: Final = "_quarantine"
REPORTS_NAME: Final = "_reports"
MANIFEST_NAME: Final = "_tally.json"
PLAN_NAME: Final = "plan.json"
LOG_ANSWER_NAME: Final = "log.json"
DATA_NAME: Final = "data"
SEARCH_NAME: Final = "search"
PROBE_NAME: Final = "probe"
PROBE_PREFIX: Final = "_probe-"
"""Of what the question before a landing writes, in staging and below the root."""
SCRUB_NAME: Final = "_scrub"
SCRUB_PLAN_NAME: Final = "scrub.json"
RESULT_NAME: Final = "result"

_SCRUB_ID: Final = re.compile(r"(?P<at>\d{8}T\d{6}Z)-[0-9a-f]{16,32}")
_FILE_TIME: Final = "%Y%m%dT%H%M%SZ"
_BATCH_PATH: Final = re.compile(
    r"(?P<root>/.*|)/(?P<feed>[^/]+)/gen=(?P<ordinal>\d+)/dt=(?P<date>\d{4}-\d\d-\d\d)"
    r"/hour=(?P<hour>\d\d)/batch=(?P<batch>[0-9a-f]{16,32})"
)


@dataclass(frozen=True, slots=True)
class StagingPath:
    """One attempt's own directory; nobody else writes there, and readers never look."""

    root: str
    batch_id: BatchId
    attempt_id: AttemptId

    @classmethod
    def of(cls, plan: BatchPlan, attempt_id: AttemptId) -> StagingPath:
        """Where this attempt at the batch writes."""
        return cls(plan.root, plan.batch_id, attempt_id)

    def __str__(self) -> str:
        return f"{self.batch_directory}/{self.attempt_id}"

    @property
    def batch_directory(self) -> str:
        """Holds the directories of all attempts of the batch."""
        return f"{self.root}/{STAGING_NAME}/{self.batch_id}"

    @property
    def plan(self) -> str:
        """What the Spark application reads: the only thing it knows."""
        return f"{self}/{PLAN_NAME}"

    @property
    def data(self) -> str:
        """What the Spark application writes, and what is renamed at publishing."""
        return f"{self}/{DATA_NAME}"

    @property
    def log_answer(self) -> str:
        """What the broker said of the logs when the application had ended."""
        return f"{self}/{LOG_ANSWER_NAME}"

    def isolation(self, number: int) -> str:
        """The directory of the search's plan, notes and result, one for each application."""
        return f"{self}/{SEARCH_NAME}-{number}"

    @property
    def probe(self) -> str:
        """What each read of a search overwrites; gone when the search is over."""
        return f"{self}/{PROBE_NAME}"

    @property
    def manifest(self) -> str:
        """Travels with the data."""
        return f"{self.data}/{MANIFEST_NAME}"


@dataclass(frozen=True, slots=True)
class BatchPath:
    """The directory in which readers find a published batch.

    >>> path = BatchPath.parse("/landing/orders/gen=1/dt=2026-11-01/hour=07/batch=0123456789abcdef")
    >>> path.feed, path.ordinal, path.batch_id, path.hour.isoformat()
    ('orders', 1, '0123456789abcdef', '2026-11-01T07:00:00+00:00')
    """

    root: str
    feed: FeedName
    ordinal: int
    hour: datetime
    batch_id: BatchId

    @classmethod
    def of(cls, plan: BatchPlan) -> BatchPath:
        """Where this batch is published."""
        hour = plan.label.replace(minute=0, second=0, microsecond=0)
        return cls(plan.root, plan.feed, plan.ordinal, hour, plan.batch_id)

    @classmethod
    def parse(cls, text: str) -> BatchPath:
        """The path in parts; ValueError when it is none of ours."""
        match = _BATCH_PATH.fullmatch(text)
        if not match:
            raise ValueError(f"{text} is no batch directory")
        hour = datetime.strptime(f"{match['date']} {match['hour']}", "%Y-%m-%d %H").replace(
            tzinfo=UTC
        )
        return cls(
            match["root"],
            FeedName(match["feed"]),
            int(match["ordinal"]),
            hour,
            BatchId(match["batch"]),
        )

    def __str__(self) -> str:
        return f"{self.parent}/batch={self.batch_id}"

    @property
    def feed_directory(self) -> str:
        """Holds all that readers find of the feed, and says who may read it."""
        return f"{self.root}/{self.feed}"

    @property
    def parent(self) -> str:
        """The directory that must exist before the rename."""
        return (
            f"{self.feed_directory}/gen={self.ordinal}/dt={self.hour:%Y-%m-%d}/hour={self.hour:%H}"
        )

    @property
    def manifest(self) -> str:
        """The batch's own account of itself."""
        return f"{self}/{MANIFEST_NAME}"


@dataclass(frozen=True, slots=True)
class ScrubPath:
    """Where a full read of landed files keeps its plan and its result; readers never look there.

    The directory bears the instant of its making, so that what a killed scrub left behind is known
    by its name.
    """

    root: str
    feed: FeedName
    scrub_id: str

    @classmethod
    def new(cls, root: str, feed: FeedName, at: datetime, unique: str) -> ScrubPath:
        """A scrub's own directory; `unique` are 16 to 32 hexadecimal characters."""
        return cls(root, feed, f"{at.astimezone(UTC):{_FILE_TIME}}-{unique}")

    def __str__(self) -> str:
        return f"{self.parent}/{self.scrub_id}"

    @property
    def parent(self) -> str:
        """Holds the directories of all scrubs of the feed."""
        return f"{self.root}/{SCRUB_NAME}/{self.feed}"

    @property
    def plan(self) -> str:
        """What the Spark application reads."""
        return f"{self}/{SCRUB_PLAN_NAME}"

    @property
    def result(self) -> str:
        """The directory that it writes."""
        return f"{self}/{RESULT_NAME}"

    @staticmethod
    def made_at(name: str) -> datetime | None:
        """When the directory of this name was made; None when it is none of ours.

        >>> ScrubPath.made_at("20261101T070000Z-0123456789abcdef").isoformat()
        '2026-11-01T07:00:00+00:00'
        """
        match = _SCRUB_ID.fullmatch(name)
        if not match:
            return None
        return datetime.strptime(match["at"], _FILE_TIME).replace(tzinfo=UTC)


def report_page(root: str, feed: FeedName, taken_at: datetime) -> str:
    """Where the page of the report of this instant lies; readers never look there."""
    return f"{root}/{REPORTS_NAME}/{feed}/{page_name(taken_at)}"


def page_name(taken_at: datetime) -> str:
    """What the page of the report of this instant is called.

    >>> page_taken_at(page_name(datetime(2026, 11, 1, 7, tzinfo=UTC))).isoformat()
    '2026-11-01T07:00:00+00:00'
    """
    return f"{taken_at.astimezone(UTC):{_FILE_TIME}}.html"


def page_taken_at(name: str) -> datetime | None:
    """The instant of the page's report, to the second; None for the name of no page."""
    with suppress(ValueError):
        return datetime.strptime(name, f"{_FILE_TIME}.html").replace(tzinfo=UTC)
    return None


def own_directories(root: str) -> list[str]:
    """Where feeds keep beside their landed files what readers never look at."""
    names = (STAGING_NAME, QUARANTINE_NAME, REPORTS_NAME, SCRUB_NAME)
    return [f"{root}/{each}" for each in names]


def quarantine_of_attempts(root: str, feed: str) -> str:
    """Where attempts' directories are kept that nobody will land any more."""
    return f"{root}/{QUARANTINE_NAME}/{feed}/unproven"


def given_up_at(path: str, feed: str) -> str | None:
    """Where a directory in staging is kept once it was given up: an attempt's, or a batch's.

    None for all of staging.

    >>> given_up_at("/r/_staging/b1/a1", "orders")
    '/r/_quarantine/orders/unproven/batch=b1/attempt=a1'
    >>> given_up_at("/r/_staging", "orders")
    """
    root, _, within = path.partition(f"/{STAGING_NAME}/")
    batch_id, _, attempt_id = within.partition("/")
    if not batch_id:
        return None
    of_batch = f"{quarantine_of_attempts(root, feed)}/batch={batch_id}"
    return f"{of_batch}/attempt={attempt_id}" if attempt_id else of_batch


def directory_of(path: str) -> str:
    """The directory that a file, or a directory, lies in."""
    return path.rpartition("/")[0]
