"""Airflow's notifiers that a feed's file names: the only place that imports their classes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from hashlib import sha256
from importlib import import_module
from typing import Any, Final

from tallystick.domain.report.news import Wish
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.verdicts import Verdict
from tallystick.settings.feed import LATE, REQUEST, FeedFile, NotifierSettings

_ACCEPTED: Final = "a class below airflow.sdk.BaseNotifier that can be imported, and its arguments"
NotifierProblem = tuple[tuple[str | int, ...], str, str]
"""Key in the feed's file, what is wrong with it, what is accepted."""


def recipient_of(settings: NotifierSettings) -> str:
    """By what the ledger knows who was told: with another class, argument or verdict, others."""
    told_of = sorted(settings.when.verdict)
    text = json.dumps([settings.notifier, settings.arguments, told_of], sort_keys=True)
    return sha256(text.encode()).hexdigest()[:16]


def wish_of(settings: NotifierSettings) -> Wish:
    """What they want to be told of a feed that they are told of at all."""
    told_of = settings.when.verdict
    verdicts = frozenset(Verdict(each) for each in told_of if each not in (LATE, REQUEST))
    return Wish(
        None if verdicts >= FAILING_VERDICTS else verdicts,
        is_told_late=LATE in told_of,
        is_told_requests=REQUEST in told_of,
        remind_after=settings.remind,
    )


def notifier_of(settings: NotifierSettings) -> Any:
    """The notifier itself; raises what its class raises."""
    return _class_of(settings.notifier)(**settings.arguments)


def notifier_problems(feed: FeedFile) -> Iterator[NotifierProblem]:
    """What is wrong with the feed's notifiers; nothing is sent, and no connection is asked."""
    for index, each in enumerate(feed.notify):
        key = ("notify", index, "notifier")
        try:
            found = _class_of(each.notifier)
        except (ImportError, AttributeError) as error:
            yield key, f"is not accepted: it can't be imported: {error}", _ACCEPTED
            continue
        if not _is_notifier(found):
            yield key, "is not accepted: it is no notifier of Airflow's", _ACCEPTED
            continue
        try:
            inspect.signature(found).bind(**each.arguments)
        except TypeError as error:
            yield ("notify", index, "arguments"), f"is not accepted: {error}", _ACCEPTED


def _class_of(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _is_notifier(found: object) -> bool:
    from airflow.sdk import BaseNotifier

    return isinstance(found, type) and issubclass(found, BaseNotifier)
