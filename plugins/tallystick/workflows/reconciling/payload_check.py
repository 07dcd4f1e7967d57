"""Level L3, where a feed asks for it: did a producer send the same record twice?

Reads the newest landed rows within a budget, never all of them: repetitions lie close together, and
each look sees those that came since the last one.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tallystick.domain.rows.payload import Payload
from tallystick.domain.rules.b3_payload_twice import payloads_twice
from tallystick.domain.rules.closing import Payloads
from tallystick.domain.rules.findings import Finding, Place
from tallystick.domain.rules.u1_could_not_tell import LANDED_ROWS, could_not_tell
from tallystick.errors import FileMissing, ManifestMismatch, StorageError
from tallystick.ledger.proofs import CommittedDirectory
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# Hashing takes some ten microseconds a row; kept are some hundred bytes of it.
_ROWS_AT_MOST: Final = 500_000


@dataclass(frozen=True, slots=True)
class PayloadsLook:
    """What a look at payloads has found, and if it has compared all that is landed."""

    said: Payloads
    findings: Sequence[Finding] = ()
    unheard: Sequence[Finding] = ()
    """Why nothing could be compared; on no record."""


def look_at_payloads(services: Services) -> PayloadsLook:
    """Rows whose payload was landed shortly before; nothing where no horizon is set."""
    horizon = services.feed.reconcile.payload_horizon
    if horizon is None:
        return PayloadsLook(Payloads.NOT_ASKED_FOR)
    try:
        landed, is_all = _newest_payloads(services)
    except StorageError as error:
        silence = could_not_tell(
            LANDED_ROWS,
            services.feed_name,
            services.topic,
            error.describe(),
            seen_at=services.clock.now(),
            what="landed payloads",
        )
        return PayloadsLook(Payloads.NOT_COMPARED, unheard=(silence,))
    found = [
        finding
        for place, payloads in landed.items()
        for finding in payloads_twice(
            place, sorted(payloads, key=lambda each: each.offset), horizon
        )
    ]
    return PayloadsLook(Payloads.COMPARED if is_all else Payloads.NOT_COMPARED, found)


def _newest_payloads(services: Services) -> tuple[Mapping[Place, list[Payload]], bool]:
    """The payloads, and if they are those of all landed rows."""
    found: defaultdict[Place, list[Payload]] = defaultdict(list)
    budget, is_all = _ROWS_AT_MOST, True
    for directory, name, count in _newest_files(services):
        budget -= count
        if budget < 0 and found:
            log.info("Payloads were compared over the newest rows only, within the budget.")
            return found, False
        try:
            for partition, payload in services.store.payloads(str(directory.path), name):
                place = Place(
                    feed=services.feed_name,
                    topic=services.topic,
                    generation=directory.path.ordinal,
                    partition=partition,
                )
                found[place].append(payload)
        except (FileMissing, ManifestMismatch) as error:
            # A8 and C1 are told by who looks for them.
            log.warning("Payloads can't be compared: %s", error)
            is_all = False
    return found, is_all


def _newest_files(services: Services) -> Iterator[tuple[CommittedDirectory, str, int]]:
    """Published files with rows, those of the newest commit first."""
    for directory in reversed(services.ledger.directories(services.feed_name)):
        if directory.is_published:
            for name, file in sorted(directory.files.items()):
                if file.record_count:
                    yield directory, name, file.record_count
