"""A connection to Kafka is checked and typed here. Opens nothing but certificates and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tallystick.settings.connections import Connection
from tallystick.settings.extras import hosts_of, require_type, text_of
from tallystick.settings.kafka_properties import (
    CLIENT_ID,
    CLIENT_SECRET,
    OAUTHBEARER,
    PASSWORD,
    USER,
    checked_properties,
)

UNUSED: Final = (
    "auto.commit.interval.ms", "auto.offset.reset", "enable.auto.commit", "group.id",
    "enable.auto.offset.store", "enable.partition.eof", "fetch.max.bytes", "fetch.min.bytes",
    "group.instance.id", "heartbeat.interval.ms", "isolation.level", "max.partition.fetch.bytes",
    "max.poll.interval.ms", "max.poll.records", "partition.assignment.strategy",
    "session.timeout.ms",
)  # fmt: skip
"""What consumers of a connection that is shared may say, and no client of ours goes by: each range
is read by its offsets, in no group, as the feed's file says.
"""


@dataclass(frozen=True, slots=True)
class KafkaConnection:
    """A cluster, under librdkafka's property names."""

    servers: str
    properties: Mapping[str, str] = field(repr=False)
    """All properties, checked, secrets among them, in the form of `checked_properties`."""
    unused: tuple[str, ...] = field(default=(), repr=False)
    """Names of the extra's consumer settings, which have no effect here."""

    @classmethod
    def of(cls, connection: Connection) -> KafkaConnection:
        """Reads the extra's properties; host, port, login and password fill what they leave open.

        Certificates and keys are read here. Raises ConfigurationError, with the connection and the
        property that can't be used.
        """
        require_type(connection, "kafka")
        properties = {
            key: text_of(connection, key) for key in connection.extra if key not in UNUSED
        }
        if connection.host and "bootstrap.servers" not in properties:
            properties["bootstrap.servers"] = ",".join(
                f"{host}:{port}" for host, port in hosts_of(connection, connection.host, 9092)
            )
        mechanism = properties.get("sasl.mechanism") or properties.get("sasl.mechanisms", "")
        has_token = mechanism.upper() == OAUTHBEARER
        if connection.login:
            properties.setdefault(CLIENT_ID if has_token else USER, connection.login)
        if connection.password is not None:
            secret = connection.password.get_secret_value()
            properties.setdefault(CLIENT_SECRET if has_token else PASSWORD, secret)
        checked = checked_properties(
            properties,
            lambda key, value, accepted: connection.wrong(f"extra {key}", value, accepted),
        )
        unused = tuple(key for key in connection.extra if key in UNUSED)
        return cls(checked["bootstrap.servers"], checked, unused)
