"""Quotas of a real Kafka: how many bytes a second it gives to each client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from kafka import KafkaAdminClient
from kafka.protocol.admin import AlterClientQuotasRequest

_Entry = AlterClientQuotasRequest.EntryData


@contextmanager
def reading_limited(servers: str, bytes_per_second: float) -> Iterator[None]:
    """In the block each client id reads no faster; afterwards as fast as it can."""
    with closing(KafkaAdminClient(bootstrap_servers=servers)) as admin:
        _set(admin, _Entry.OpData(key="consumer_byte_rate", value=bytes_per_second, remove=False))
        try:
            yield
        finally:
            _set(admin, _Entry.OpData(key="consumer_byte_rate", value=0.0, remove=True))


def _set(admin: KafkaAdminClient, change: AlterClientQuotasRequest.EntryData.OpData) -> None:
    each_client = _Entry.EntityData(entity_type="client-id", entity_name=None)
    request = AlterClientQuotasRequest(
        entries=[_Entry(entity=[each_client], ops=[change])], validate_only=False
    )
    # The library has the messages of quotas, and no call of its own for them.
    [told] = admin._manager.run(admin._manager.send, request).entries
    assert told.error_code == 0, told
