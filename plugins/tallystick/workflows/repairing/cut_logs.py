"""Asks the broker from where cut logs are due again: `domain.repair.new_generation` judges."""

from __future__ import annotations

from collections.abc import Mapping

from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot, EpochEnd
from tallystick.domain.repair.new_generation import claims_anchor, due_again_from, epoch_to_ask
from tallystick.errors import SourceRefused
from tallystick.workflows.services import Services


def cut_at(
    services: Services, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> dict[int, int]:
    """By stopped partition that the broker shows, from where its log is due again, where known."""
    stopped = {
        partition: account
        for partition, account in generations.items()
        if account.state is GenerationState.STOPPED and partition in snapshot.partitions
    }
    asked = {partition: epoch_to_ask(account) for partition, account in stopped.items()}
    epochs = {partition: epoch for partition, epoch in asked.items() if epoch is not None}
    ends = {
        partition: end
        for partition, end in services.broker.epoch_ends(services.topic, epochs).items()
        if not _is_contradicted(services, stopped[partition], end)
    }
    found = {each: due_again_from(account, ends.get(each)) for each, account in stopped.items()}
    return {partition: offset for partition, offset in found.items() if offset is not None}


def _is_contradicted(services: Services, account: GenerationAccount, end: EpochEnd) -> bool:
    """True where the log holds another record than the last landed one, or none can be read."""
    anchor, partition = account.anchor, account.partition.partition
    if anchor is None or not claims_anchor(account, end):
        return False
    try:
        found = services.broker.records_at(services.topic, {partition: anchor.offset})
    except SourceRefused:
        return True
    return partition in found and found[partition].content_hash != anchor.content_hash
