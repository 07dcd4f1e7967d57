"""A5 of a topic that is gone, and that no other has taken the place of: what looks have seen of it,
and nobody has landed.

A broker that is behind, or whose user lost a right, denies a topic too. So it is UNKNOWN for a day,
and lost after it; a plan that finds another topic of that name states the same with its change.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.rules.a5_topic_recreated import A5
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.losses import ACCEPT
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState, Verdict

_BELIEVED_AFTER: Final = timedelta(days=1)
_SINCE: Final = "gone_since"
_OF_ANOTHER: Final = ("topic_id_now", "cluster_id_now", "seen_at")


def gone_with_topic(
    foreseen: Iterable[Finding], standing: Sequence[StoredFinding], now: datetime
) -> list[Finding]:
    """What is foreseen of logs without a successor, as offsets of a topic that is gone.

    `standing` says since when that is known, and what people have accepted: that stays as it is.
    """
    told = [str(since) for each in standing if (since := each.finding.evidence.get(_SINCE))]
    since = min(told, default=now.isoformat(timespec="seconds"))
    is_believed = now - datetime.fromisoformat(since) >= _BELIEVED_AFTER
    accepted = {
        each.finding.key: each.finding.verdict
        for each in standing
        if each.state is FindingState.WAIVED
    }
    return [
        replace(
            each,
            verdict=accepted.get(each.key, each.verdict if is_believed else Verdict.UNKNOWN),
            cause=each.cause.replace("the topic was re-created", "the topic was deleted"),
            next_step=(
                "Ask who deleted the topic, and if it can be had from elsewhere. Don't create it by"
                f" hand: that is another log, and these offsets would be lost for good. {ACCEPT}"
            ),
            evidence={
                **{key: said for key, said in each.evidence.items() if key not in _OF_ANOTHER},
                _SINCE: since,
            },
        )
        for each in foreseen
        if each.rule == A5 and each.from_offset is not None
    ]
