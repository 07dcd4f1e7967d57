"""What rules ask beside accounts and findings: past looks, and logs that contradict themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tallystick.domain.batches.batch import TriedBatch
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import FeedName
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import PastBounds
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.registry import codes_with
from tallystick.domain.rules.rule import Trait
from tallystick.ledger.batches import generations
from tallystick.ledger.connection import Tables
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.rows import batch_rows, batch_statuses, generation_account

# A day of landing every quarter of an hour; before, one look an hour.
_LOOKS: Final = 100
_REACH: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class SettledRanges:
    """All committed and lost ranges of one generation, as the ledger's rows say."""

    account: GenerationAccount
    ranges: Sequence[OffsetRange]
    """By offset; they may overlap."""


@dataclass(frozen=True, slots=True)
class TwiceCommitted:
    """Offsets that a generation has committed, and an earlier one of the same topic id, too."""

    account: GenerationAccount
    offsets: OffsetRange
    earlier: int
    """The other generation's ordinal."""


class Evidence(Tables):
    """Questions of rules."""

    def past_bounds(
        self, feed: FeedName, topic_id: str, partitions: Collection[int]
    ) -> Mapping[int, Sequence[PastBounds]]:
        """What looks at this log showed of these partitions, oldest first.

        As many of the newest looks as it takes for a day of landing every quarter of an hour, and
        the first one of each hour of the last two days; no more, however long the history is.
        """
        if not partitions:
            return {}
        asked = frozenset(partitions)
        found: defaultdict[int, list[PastBounds]] = defaultdict(list)
        for row in self._connection.rows(
            "past_bounds", feed=feed, topic_id=topic_id, most=_LOOKS, reach=_REACH
        ):
            shown, looked_at = Shown.of(row.shown), row.looked_at
            columns = (shown.partitions, shown.high_watermarks, shown.last_stable_offsets)
            for partition, high_watermark, last_stable in zip(*columns, strict=True):
                if partition in asked:
                    found[partition].append(PastBounds(looked_at, high_watermark, last_stable))
        return dict(found)

    def tried(self, feed: FeedName) -> Sequence[TriedBatch]:
        """The feed's unfinished batches that were tried, oldest first."""
        with self._connection.reading() as transaction:
            tried = {row.batch_id: row for row in transaction.rows("tried_batches", feed=feed)}
            unfinished = batch_rows(transaction, feed=feed, only_unfinished=True) if tried else ()
            statuses = batch_statuses(transaction, unfinished)
        return [
            TriedBatch(
                plan=each.plan,
                failures=row.failures,
                last_failure=(row.last_failure or "").removeprefix("failed: "),
                holder=each.holder,
                held_seconds=row.held_seconds,
            )
            for each in statuses
            if (row := tried.get(each.plan.batch_id))
        ]

    def idle(self, feed: FeedName) -> timedelta | None:
        """Since the last sign of a run: a plan, an attempt's end, or a lease that has run out.

        Zero or less while a batch is held; None for a feed that was never planned.
        """
        seconds = self._connection.one("idle_seconds", feed=feed).seconds
        return None if seconds is None else timedelta(seconds=seconds)

    def unsound(self, feed: FeedName) -> Sequence[SettledRanges]:
        """The generations whose ranges overlap, or leave something open below the frontier.

        None as long as the schema's own constraints stand.
        """
        with self._connection.reading() as transaction:
            # Union and sum of a million ranges differ by seconds.
            is_guarded = transaction.one("has_overlap_constraint").is_there
            rule = "generations_with_gaps" if is_guarded else "unsound_generations"
            ids = [row.generation_id for row in transaction.rows(rule, feed=feed)]
            if not ids:
                return []
            rows = transaction.rows("settled_ranges", generation_ids=ids)
            accounts = generations(transaction, feed)
        return [
            SettledRanges(
                account,
                [
                    OffsetRange(account.partition, row.from_offset, row.until_offset)
                    for row in rows
                    if row.generation_id == account.generation_id
                ],
            )
            for account in accounts.values()
            if account.generation_id in ids
        ]

    def ended_logs(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, str, str]]:
        """Logs that are stopped, and those that ended with their topic, each with the finding code
        and the reason; by partition, oldest first.
        """
        recreated = FindingCode.TOPIC_RECREATED.value
        rows = self._connection.rows("ended_generations", feed=feed, recreated=recreated)
        return [(generation_account(row), row.ending_code, row.ending_reason) for row in rows]

    def unseen_beginnings(self, feed: FeedName) -> Sequence[GenerationAccount]:
        """Logs that began above offset 0 when the feed first saw them, by partition."""
        return [*map(generation_account, self._connection.rows("unseen_beginnings", feed=feed))]

    def left_unread(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, OffsetRange]]:
        """What was seen of logs that a rebuild has closed, and is neither committed nor lost.

        By generation and offset; what unfinished batches claim is left out.
        """
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "left_unread", feed=feed, rebuilt=FindingCode.LEDGER_BEHIND.value
            )
            accounts = generations(transaction, feed) if rows else {}
        found = ((accounts[row.generation_id], row) for row in rows)
        return [
            (account, OffsetRange(account.partition, row.from_offset, row.until_offset))
            for account, row in found
        ]

    def committed_in_two_lives(self, feed: FeedName) -> Sequence[TwiceCommitted]:
        """What two generations of one log hold, by generation and offset; those of a cut left out.

        None as long as the schema's own refusals stand.
        """
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "committed_in_two_lives", feed=feed, cut_codes=codes_with(Trait.CUT)
            )
            accounts = generations(transaction, feed) if rows else {}
        found = ((accounts[row.generation_id], row) for row in rows)
        return [
            TwiceCommitted(
                account,
                OffsetRange(account.partition, row.from_offset, row.until_offset),
                row.earlier,
            )
            for account, row in found
        ]
