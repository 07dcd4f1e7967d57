"""Spark's Kafka client says which brokers it can't reach."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from tallystick.errors import ApplicationFailed, BrokersUnreached
from tallystick.ports.spark_runner import LandingOrder

# Of Kafka's admin client in the driver, and of its consumers in the executors.
_NO_BROKER: Final = re.compile(
    r"waiting for a node assignment|Timed out waiting to send the call"
    r"|expired before the position for partition|fetching topic metadata|No resolvable bootstrap"
)
_UNREACHED: Final = re.compile(
    r"Connection to node (?P<node>-?\d+) \((?P<host>[^)]+)\) could not be established"
    r"|Error connecting to node (?P<unknown>\S+)"
    r"|Couldn't resolve server (?P<server>\S+)"
)
_SERVERS: Final = re.compile(r'"kafka\.bootstrap\.servers": *"([^"]*)"')


def unreached_in(line: str) -> str | None:
    """The broker that this line of Kafka's client is about; None where it is about none."""
    found = _UNREACHED.search(line)
    return found and (found["host"] or found["unknown"] or found["server"])


def failure(
    order: LandingOrder, application: str, reason: str, unreached: Collection[str] = ()
) -> ApplicationFailed:
    """The error of a landing or a search: BrokersUnreached where no broker answers Spark.

    `unreached` are brokers that its client has named; without any the plan's servers are told.
    """
    if not _NO_BROKER.search(reason):
        return ApplicationFailed(order.batch_id, application, reason)
    servers = _SERVERS.search(order.plan_text)
    named = ", ".join(unreached) or (
        f"{servers[1] if servers else 'its servers'}, or at a broker that is named there"
    )
    told = f"it can't reach Kafka at {named}: {reason}"
    return BrokersUnreached(order.batch_id, application, told)
