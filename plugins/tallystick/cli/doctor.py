"""`doctor`: asks everything that a run will ask, and says of each answer if it is as it should be,
and what mends it. Changes nothing but the probe of a landing.

The witnesses of a feed are asked at the same time, and each check is shown once it is known. Only
Airflow is asked behind the others: its import takes standard output over.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Final

import typer

from tallystick import __version__
from tallystick.cli.answers import (
    CLEAN,
    FINDINGS,
    Answer,
    closed_pipes_ignored,
    deliver,
    show_blocks,
)
from tallystick.cli.options import JsonOption
from tallystick.cli.stage import Stage, airflow_kept_quiet, find_connection, has_airflow, stage_of
from tallystick.errors import (
    ConnectionMissing,
    FeedFileInvalid,
    IngestionError,
    SparkUnavailable,
)
from tallystick.report.documents import Document, Part
from tallystick.report.wording import counted
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import FeedFolder, read_feeds
from tallystick.settings.kafka_connection import KafkaConnection
from tallystick.workflows.services import Services


class CheckPart(Part):
    """One question and its answer."""

    feed: str | None
    check: str
    is_ok: bool
    what: str
    next_step: str | None = None


class DoctorDocument(Document):
    """`doctor`."""

    format: str = "tallystick-doctor-1"
    checks: Sequence[CheckPart]


def doctor(
    context: typer.Context,
    feed: Annotated[str | None, typer.Argument(help="The feed's name; all feeds without.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask Kafka, HDFS, Spark, the ledger and Airflow if a run can do its work. Exit 1 if not."""
    deliver(lambda: _examined(stage_of(context), feed, as_json), as_json=as_json)


def _examined(stage: Stage, name: str | None, as_json: bool) -> Answer:
    """The document; for a person each check is shown here, once it is known."""
    checks = []
    for each in _checks(stage, name):
        checks.append(each)
        if not as_json:
            with closed_pipes_ignored():
                show_blocks(_lines(each))
    is_ok = all(each.is_ok for each in checks)
    return Answer(DoctorDocument(checks=checks), [], CLEAN if is_ok else FINDINGS)


def _checks(stage: Stage, name: str | None) -> Iterator[CheckPart]:
    if name is None:
        found = read_feeds(stage.folder)
    else:
        found = FeedFolder({name: stage.feed(name)}, {}, ())
    yield CheckPart(feed=None, check="versions", is_ok=True, what=_versions())
    mend = FeedFileInvalid.next_step
    for problem in found.problems:
        what = str(problem)
        yield CheckPart(feed=None, check="feed files", is_ok=False, what=what, next_step=mend)
    for each in found.feeds.values():
        yield from _of_feed(stage, each)
    for group in found.groups:
        what = f"Its feeds are not asked about: name one, as tallystick doctor {group}--TOPIC."
        yield CheckPart(feed=group, check="topics", is_ok=True, what=what)


def _lines(check: CheckPart) -> Iterator[str]:
    about = f"{check.feed}: " if check.feed else ""
    yield f"{'ok   ' if check.is_ok else 'WRONG'} {about}{check.check}: {check.what}"
    if check.next_step:
        yield f"      next: {check.next_step}"


def _versions() -> str:
    try:
        airflow = f"Airflow {version('apache-airflow')}"
    except PackageNotFoundError:
        airflow = "no Airflow"
    return f"Tallystick {__version__}, Python {platform.python_version()}, {airflow}."


def _of_feed(stage: Stage, feed: Feed) -> Iterator[CheckPart]:
    try:
        with stage.services(feed) as services, ThreadPoolExecutor(len(_QUESTIONS)) as pool:
            asked = [
                pool.submit(_asked, feed, check, partial(ask, services))
                for check, ask in _QUESTIONS.items()
            ]
            yield _asked(feed, "connections", lambda: _settings_of(stage, feed))
            yield from (each.result() for each in as_completed(asked))
    except ConnectionMissing as error:
        # The first one that was asked for; so are those that would be missed after it.
        yield from _missing_connections(stage, feed) or [_wrong(feed, "connections", error)]
    except IngestionError as error:
        yield _wrong(feed, "connections", error)
    if has_airflow(stage.environ):
        yield from _airflow(feed)


def _missing_connections(stage: Stage, feed: Feed) -> list[CheckPart]:
    """Each connection of the feed that does not exist, or can't be read."""
    from tallystick.wiring.adapters import LEDGER_CONNECTION

    names = (feed.source.connection, feed.target.connection, feed.spark.connection)
    found = []
    for name in dict.fromkeys([*names, LEDGER_CONNECTION]):
        try:
            find_connection(stage.environ, name)
        except IngestionError as error:
            found.append(_wrong(feed, "connections", error))
    return found


def _asked(feed: Feed, check: str, ask: Callable[[], str]) -> CheckPart:
    try:
        return CheckPart(feed=feed.name, check=check, is_ok=True, what=ask())
    except IngestionError as error:
        return _wrong(feed, check, error)


def _wrong(feed: Feed, check: str, error: IngestionError) -> CheckPart:
    what, mend = error.describe(), error.next_step
    return CheckPart(feed=feed.name, check=check, is_ok=False, what=what, next_step=mend)


def _settings_of(stage: Stage, feed: Feed) -> str:
    """Says that all could be opened, and what a shared one of Kafka says for others."""
    name = feed.source.connection
    unused = KafkaConnection.of(find_connection(stage.environ, name)).unused
    words = f" Of {name} not used: {', '.join(unused)}." if unused else ""
    return f"all are there.{words}"


def _topic(services: Services) -> str:
    seen = services.broker.snapshot(services.topic)
    starts = {number: each.log_start_offset for number, each in seen.partitions.items()}
    services.broker.batch_heads(services.topic, starts)  # takes the right to read
    return f"{services.topic} has {counted('partition', len(starts))}, and may be read."


def _root(services: Services) -> str:
    shown_in = f"{services.root}/{services.feed_name}"
    services.store.require_writable(services.root, shown_in)
    return f"below {services.root} a probe was written, renamed and deleted."


def _ledger(services: Services) -> str:
    standing = services.ledger.findings(services.feed_name)
    return f"answers, its schema is this version's; {counted('finding', len(standing))} on record."


def _spark(services: Services) -> str:
    if not services.spark.interrupt(services.new_id()):
        raise SparkUnavailable(services.feed.spark.connection, "it does not answer")
    return f"{services.feed.spark.connection} answers, as far as it is asked before a landing."


_QUESTIONS: Final = {"topic": _topic, "root": _root, "ledger": _ledger, "Spark": _spark}


def _airflow(feed: Feed) -> Iterator[CheckPart]:
    """Checks what the feed's tasks need in Airflow itself."""
    name, pool, mend = feed.spark.pool, None, None
    with airflow_kept_quiet():
        from airflow.configuration import conf
        from airflow.models.pool import Pool

        try:
            pool = Pool.get_pool(name)
            what = f"{name} has {pool.slots} slots." if pool else f"Airflow has no pool {name}."
            mend = None if pool else f'airflow pools set {name} 1 "Spark applications"'
        except Exception as error:  # noqa: BLE001  whatever a database without an answer raises
            what = f"Airflow's database does not answer: {str(error).partition(chr(10))[0]}"
            mend = "Is AIRFLOW_HOME that of your Airflow? Look at its database: airflow db check"
        most = conf.getint("core", "max_map_length")
    is_ok = pool is not None
    yield CheckPart(feed=feed.name, check="pool", is_ok=is_ok, what=what, next_step=mend)
    what = f"one run lands at most {most} batches ([core] max_map_length)."
    yield CheckPart(feed=feed.name, check="Airflow's limits", is_ok=True, what=what)
