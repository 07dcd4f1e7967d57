"""What the broker said of the logs when an application had just ended: kept beside its files.

1. It vouches for rows only: they were read before, from the very log that the landing began with.
   A hole, or a record, that is asked for later is of the log as it is then.
2. `LogAnswer.from_json(a.to_json()) == a`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.plain_json import from_plain, to_plain


@dataclass(frozen=True, slots=True)
class LogAnswer:
    """Which ranges were read from one and the same log."""

    cluster_id: str
    topic_id: str
    taken_at: datetime
    same: tuple[OffsetRange, ...]
    """Up to the end of each, the log was then the one that the landing had begun to read."""

    def vouches_for(self, plan: BatchPlan, offsets: OffsetRange) -> bool:
        """True when the rows of this range are those of the planned log."""
        is_its_log = (self.cluster_id, self.topic_id) == (plan.cluster_id, plan.topic_id)
        return is_its_log and any(each.intersection(offsets) == offsets for each in self.same)

    def to_json(self) -> str:
        """The answer as text."""
        return json.dumps(to_plain(self))

    @classmethod
    def from_json(cls, text: str) -> LogAnswer:
        """The answer again; ValueError when the text is none."""
        return from_plain(cls, json.loads(text))
