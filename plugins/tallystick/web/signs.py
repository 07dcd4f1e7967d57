"""What is wrong with a feed, since when, and who must act: by the ledger, and by Airflow's record.

1. A feed that has no sign is in order: whoever says so has asked both.
2. What follows from a sign, as a proof that grows old while the DAG is paused that would renew it,
   is no sign of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.rules.n1_overdue import STORAGE_IS_DUE
from tallystick.domain.rules.waivers import WaiverRequest, asked_at_once
from tallystick.domain.verdicts import Verdict
from tallystick.orchestration.dag_ids import DEADLINE, INGEST, RECONCILE, dag_id_of
from tallystick.report.wording import counted, troubles_text
from tallystick.web.answers import FeedAnswer, Sign
from tallystick.web.dag_heads import DagHead

_IN_ORDER: Final = frozenset({Verdict.PROVEN_OK, Verdict.WAIVED})
_BEGINS_WITHIN: Final = timedelta(hours=1)
"""A scheduler that lives has begun a run so long after it was due."""


def signs_of(
    feed: str,
    answer: FeedAnswer | None,
    dags: Mapping[str, DagHead],
    requests: Sequence[WaiverRequest],
    now: datetime,
    ended_at: datetime | None = None,
    broken: Sequence[str] = (),
    *,
    tells_dags: bool = True,
) -> Sequence[Sign]:
    """All that is wrong with the feed, what should be seen first at the front.

    `answer` is None before its first plan, and after its end. `dags` are by kind, those that are
    gone too. `requests` are its requests for a waiver that nobody has answered, `broken` what
    Airflow can't read in its file.
    """
    if ended_at:
        said, act = "It was ended", "Remove its file: Airflow still has it."
        return [Sign(feed=feed, said=said, since=ended_at, act=act)]
    return [
        *_of_verdict(feed, answer),
        *(_of_dags(feed, answer is not None, dags, now, broken) if tells_dags else ()),
        *_of_age(feed, answer, dags, now),
        *_of_requests(feed, requests),
    ]


def _of_verdict(feed: str, answer: FeedAnswer | None) -> Iterator[Sign]:
    if answer is None or answer.verdict in _IN_ORDER:
        return
    if answer.open_findings:
        many = troubles_text(answer.open_troubles, answer.open_findings)
        act = "Look at its troubles: repair them, or accept them."
    elif answer.storage_heard_at:
        many = "a witness did not answer, or nothing of a partition is landed"
        act = f"Run {dag_id_of(INGEST, feed)}, then {dag_id_of(RECONCILE, feed)}."
    else:
        return  # its age tells it
    said = f"{answer.verdict.value}: {many}"
    yield Sign(feed=feed, said=said, since=answer.open_since, act=act)


def signs_of_dags(
    group: str, dags: Mapping[str, DagHead], now: datetime, broken: Sequence[str]
) -> Sequence[Sign]:
    """What is wrong with the DAGs that the feeds of a group share, and with its file."""
    return list(_of_dags(group, True, dags, now, broken))


def _of_dags(
    feed: str,
    is_on_record: bool,
    dags: Mapping[str, DagHead],
    now: datetime,
    broken: Sequence[str],
) -> Iterator[Sign]:
    known = [each for each in dags.values() if not each.is_stale]
    gone = [kind for kind in (INGEST, RECONCILE) if kind not in {each.kind for each in known}]
    parsed = [each.parsed_at for each in dags.values() if each.is_stale and each.parsed_at]
    if broken:
        more = f", and {counted('problem', len(broken) - 1)} more" if broken[1:] else ""
        said, act = f"Its file is broken: {broken[0]}{more}", "Mend it: tallystick feed check."
        yield Sign(feed=feed, said=said, since=max(parsed, default=None), act=act)
    elif gone and (is_on_record or known):
        yield Sign(
            feed=feed,
            said=f"Airflow has no {dag_id_of(gone[0], feed)}: the feed's file is gone",
            since=max(parsed, default=None),
            act="Bring the file back, or retire the feed.",
        )
    for each in known:
        waits = each.is_stuck and (each.is_paused or each.kind == DEADLINE)
        if each.failing_since and not waits:
            yield Sign(
                feed=feed,
                said=f"{each.dag_id} {'does not end' if each.is_stuck else 'fails'}",
                since=each.failing_since,
                act=f"Read why in its newest {'' if each.is_stuck else 'failed '}run.",
                dag_id=each.dag_id,
                run_id=each.failed_run,
                sentence=each.sentence,
            )
        if each.is_paused and each.kind in (INGEST, RECONCILE):
            act = f"Unpause {each.dag_id}."
            yield Sign(feed=feed, said=f"{each.dag_id} is paused", since=None, act=act)
    late = [each for each in known if _is_late(each, now)]
    if late:
        first = min(late, key=lambda each: each.next_at or now)
        said, act = f"{first.dag_id} has not begun", "Look if Airflow's scheduler runs."
        yield Sign(feed=feed, said=said, since=first.next_at, act=act)


def _is_late(dag: DagHead, now: datetime) -> bool:
    return dag.next_at is not None and now - dag.next_at > _BEGINS_WITHIN


def _of_age(
    feed: str, answer: FeedAnswer | None, dags: Mapping[str, DagHead], now: datetime
) -> Iterator[Sign]:
    """A feed that has not begun, and a proof that is old, where no other sign says why."""
    dag = dags.get(RECONCILE if answer else INGEST)
    if dag is None or dag.is_stale or dag.is_paused or dag.failing_since or _is_late(dag, now):
        return
    act = f"Trigger {dag.dag_id}."
    if answer is None:
        yield Sign(feed=feed, said="It has no plan yet", since=None, act=act)
        return
    heard_at = answer.storage_heard_at
    if heard_at is None or now - heard_at > STORAGE_IS_DUE:
        yield Sign(feed=feed, said="No reconcile has proven it", since=heard_at, act=act)


def _of_requests(feed: str, requests: Sequence[WaiverRequest]) -> Iterator[Sign]:
    """One for all that somebody has asked at once."""
    for first, *more_of_it in asked_at_once(requests):
        asker, number = first.wish.asked_by, first.wish.finding_id
        more = f" and {len(more_of_it)} more" if more_of_it else ""
        yield Sign(
            feed=feed,
            said=f"A request by {asker} to accept finding {number}{more} waits",
            since=first.asked_at,
            act=f"Somebody other than {asker} approves it, or repairs it.",
            finding=number,
        )
