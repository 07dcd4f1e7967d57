"""What is said of a topic that is gone: no witness answers, but the ledger knows its ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.rules.a5_topic_recreated import gone_with_topic
from tallystick.domain.rules.findings import Finding
from tallystick.errors import TopicGone
from tallystick.workflows.planning.looking import foreseen_by_look
from tallystick.workflows.services import Services
from tallystick.workflows.stored.staging import staged


def gone_findings(services: Services, accounts: Accounts) -> list[Finding]:
    """The offsets that looks have seen and nobody has landed; changes nothing.

    A topic that is gone is judged as one whose next life has no partition.
    """
    ledger, known = services.ledger, next(iter(accounts.generations.values()))
    snapshot = BrokerSnapshot(known.cluster_id, services.topic, "", ledger.clock(), {})
    seen = Observation(snapshot, {}, {})
    found = foreseen_by_look(services, accounts, seen, staged(services))
    return gone_with_topic(found, ledger.findings(services.feed_name), ledger.clock())


@contextmanager
def recorded_if_gone(services: Services) -> Iterator[None]:
    """A run that meets no topic leaves on record what it can't land any more."""
    try:
        yield
    except TopicGone:
        found = gone_findings(services, services.ledger.accounts(services.feed_name))
        services.ledger.record_findings(services.feed_name, found)
        raise
