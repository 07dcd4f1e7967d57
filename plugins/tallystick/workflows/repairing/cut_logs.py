"""Asks the broker from where the logs of stopped partitions are due again."""

from __future__ import annotations

from collections.abc import Mapping

from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.errors import SourceRefused
from tallystick.workflows.services import Services


def cut_at(
    services: Services, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> dict[int, int]:
    """From where the logs of stopped partitions are due again, as the leader's epochs say it.

    Never from beyond the frontier: what was not landed behind a gap is due, wherever the cut is.
    """
    found, epochs = {}, {}
    for partition, account in generations.items():
        is_asked = partition in snapshot.partitions
        if account.state is not GenerationState.STOPPED or not is_asked:
            continue
        if account.read_until is None and account.anchor is None:
            found[partition] = account.frontier
            continue
        anchored = account.anchor.leader_epoch if account.anchor else None
        epoch = account.seen_epoch if anchored is None else anchored
        if epoch is not None:
            epochs[partition] = epoch
    for partition, end in services.broker.epoch_ends(services.topic, epochs).items():
        account = generations[partition]
        is_known = end.until_offset > end.log_start_offset
        if is_known and not _is_contradicted(services, account, end.until_offset):
            found[partition] = min(end.until_offset, account.frontier)
    return found


def _is_contradicted(services: Services, account: GenerationAccount, end: int) -> bool:
    """True where the epochs say the last landed record is in the log, and none can read it so."""
    anchor, partition = account.anchor, account.partition.partition
    if anchor is None or end <= anchor.offset:
        return False
    try:
        found = services.broker.records_at(services.topic, {partition: anchor.offset})
    except SourceRefused:
        return True
    return partition in found and found[partition].content_hash != anchor.content_hash
