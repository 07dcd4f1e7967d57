"""A Kafka that lets nobody in without a password, a certificate or a token, and asks for rights.

Each kind of guard has a listener, all on one broker; the open one is for brokers and for whoever
makes topics, users and rights here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from typing_extensions import override

from sandbox.clusters.authority import Authority
from sandbox.clusters.cluster import Cluster
from sandbox.clusters.token_endpoint import SCOPE, TokenEndpoint
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST
from sandbox.processes import wait_until
from sandbox.service import Home, Service
from sandbox.services.kafka import CONTROLLER_ID, KafkaNode

NAME: Final = "kafka-tls"
USER, GUEST = "lander", "guest"
USERS: Final = (USER, GUEST)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
PROTOCOLS: Final = ("SASL_PLAINTEXT", "SASL_SSL", "SSL")
READING: Final = (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
"""All that reading a topic takes."""
_SECURITY: Final = "org.apache.kafka.common.security"
_ANSWER_SECONDS: Final = 30
_AWKWARD: Final = '$1:/@ "x\\'


class GuardedBroker(KafkaNode):
    """One broker that is its own controller, with a listener for each way to be let in."""

    cluster_id_fact = "kafka_tls_cluster_id"

    def __init__(self, home: Home, authority: Authority, tokens: TokenEndpoint) -> None:
        super().__init__(
            home,
            NAME,
            node_id=CONTROLLER_ID,
            roles=("broker", "controller"),
            controller_port=f"{NAME}-controller",
        )
        self.port_names = (*self.port_names, *(port_of(each) for each in PROTOCOLS))
        self._authority, self._tokens = authority, tokens

    def password(self, user: str) -> str:
        """Of the user, for PLAIN and SCRAM; full of what needs quotes somewhere."""
        return self.home.state.secret(f"{NAME}-{user}") + _AWKWARD

    @override
    def command(self) -> list[str]:
        program, *rest = super().command()
        # Kafka 4 reads keys from no place that it was not told of before.
        keys = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self._keys_url}"
        return [program, keys, *rest]

    @property
    def _keys_url(self) -> str:
        """Where the public keys lie, as the broker finds them from its own working directory.

        Kafka can't read a file whose URL has a blank, and the checkout's path may have one.
        """
        return f"file:///proc/self/cwd/{os.path.relpath(self._tokens.keys, self.folder)}"

    @override
    def provision(self) -> None:
        """Users and their rights, which live in the broker's own log."""
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 3})
        # One request may not change a user twice.
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            wanted = [
                UserScramCredentialUpsertion(
                    user, ScramCredentialInfo(mechanism, 4096), self.password(user).encode()
                )
                for user in USERS
            ]
            for each in client.alter_user_scram_credentials(wanted).values():
                each.result(_ANSWER_SECONDS)
        self.allow(USER, "*", *READING)

    def allow(
        self,
        user: str,
        name: str,
        *operations: AclOperation,
        kind: ResourceType = ResourceType.TOPIC,
    ) -> None:
        """Give the user these rights on a topic, or on another kind of thing; `*` means all."""
        client = AdminClient({"bootstrap.servers": self.address, "log_level": 3})
        whose = (kind, name, ResourcePatternType.LITERAL, f"User:{user}", "*")
        bindings = [AclBinding(*whose, each, AclPermissionType.ALLOW) for each in operations]
        for each in client.create_acls(bindings).values():
            each.result(_ANSWER_SECONDS)
        every = AclBindingFilter(*whose, AclOperation.ANY, AclPermissionType.ALLOW)

        def are_known() -> bool:
            known = client.describe_acls(every).result(_ANSWER_SECONDS)
            return {each.operation for each in known} >= set(operations)

        # The controller answers first, and the broker learns of it from its log.
        if not wait_until(are_known, _ANSWER_SECONDS):
            raise ServiceFailed(self.name, f"does not know the rights of {user}", self.log)

    @override
    def prepare(self) -> None:
        super().prepare()
        (self.folder / "server.properties").chmod(0o600)

    @override
    def _properties(self) -> dict[str, str]:
        found, ports = super()._properties(), self.home.ports
        guarded = "".join(f",{each}://{HOST}:{ports[port_of(each)]}" for each in PROTOCOLS)
        store_password = self.home.state.secret("kafka-tls-store")
        store = self._authority.key_store("broker", store_password)
        return found | {
            "listeners": found["listeners"] + guarded,
            "advertised.listeners": found["advertised.listeners"] + guarded,
            "listener.security.protocol.map": ",".join(
                [found["listener.security.protocol.map"], *(f"{each}:{each}" for each in PROTOCOLS)]
            ),
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.location": str(store),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": store_password,
            "ssl.truststore.location": str(self._authority.ca),
            "ssl.truststore.type": "PEM",
            "listener.name.ssl.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([a-z]+)$/$1/,DEFAULT",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "sasl.oauthbearer.jwks.endpoint.url": self._keys_url,
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            **self._logins(),
        }

    def _logins(self) -> dict[str, str]:
        users = " ".join(f"user_{user}={_quoted(self.password(user))}" for user in USERS)
        scram = f"{_SECURITY}.scram.ScramLoginModule required;"
        oauth = f"{_SECURITY}.oauthbearer"
        settings = {
            "plain.sasl.jaas.config": f"{_SECURITY}.plain.PlainLoginModule required {users};",
            "scram-sha-256.sasl.jaas.config": scram,
            "scram-sha-512.sasl.jaas.config": scram,
            "oauthbearer.sasl.jaas.config": f"{oauth}.OAuthBearerLoginModule required;",
            "oauthbearer.sasl.server.callback.handler.class": (
                f"{oauth}.OAuthBearerValidatorCallbackHandler"
            ),
        }
        return {
            f"listener.name.{listener}.{key}": value.replace("\\", "\\\\")
            for listener in ("sasl_plaintext", "sasl_ssl")
            for key, value in settings.items()
        }


class KafkaTls(Cluster):
    """The broker, and an endpoint that gives tokens for it."""

    name, title = NAME, "Kafka with TLS and passwords"

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.authority = Authority(home.directory / NAME / "authority")
        self.tokens = TokenEndpoint(home, f"{NAME}-tokens", self.authority, USERS)
        self.broker = GuardedBroker(home, self.authority, self.tokens)

    @property
    @override
    def services(self) -> Sequence[Service]:
        return [self.tokens, self.broker]

    def properties(
        self, protocol: str = "SASL_SSL", mechanism: str = "SCRAM-SHA-512", user: str = USER
    ) -> dict[str, str]:
        """What a client of this listener needs, under librdkafka's names."""
        found = {
            "bootstrap.servers": f"{HOST}:{self.home.ports[port_of(protocol)]}",
            "security.protocol": protocol,
        }
        if protocol.endswith("SSL"):
            found["ssl.ca.location"] = str(self.authority.ca)
        if protocol == "SSL":
            own = self.authority.identity(user)
            return found | {
                "ssl.certificate.location": str(own.certificate),
                "ssl.key.location": str(own.key),
            }
        if mechanism != "OAUTHBEARER":
            login = {"sasl.username": user, "sasl.password": self.broker.password(user)}
            return found | {"sasl.mechanism": mechanism} | login
        return found | {
            "sasl.mechanism": mechanism,
            "sasl.oauthbearer.client.id": user,
            "sasl.oauthbearer.client.secret": self.tokens.secret(user),
            "sasl.oauthbearer.token.endpoint.url": self.tokens.address,
            "sasl.oauthbearer.scope": SCOPE,
            "https.ca.location": str(self.authority.ca),
        }

    @override
    def connections(self) -> Mapping[str, str]:
        ways = {
            "KAFKA_TLS": self.properties(),
            "KAFKA_MTLS": self.properties("SSL"),
            "KAFKA_OAUTH": self.properties("SASL_SSL", "OAUTHBEARER"),
        }
        return {
            f"AIRFLOW_CONN_{name}": json.dumps({"conn_type": "kafka", "extra": extra})
            for name, extra in ways.items()
        }


def port_of(protocol: str) -> str:
    """The name of the listener's port."""
    return f"{NAME}-{protocol.lower().replace('_', '-')}"


def _quoted(value: str) -> str:
    """The value as a string of a JAAS line."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
