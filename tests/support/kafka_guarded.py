"""A real broker that lets nobody in without a password, over TLS or not, for tests of refusals."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from sandbox import Sandbox
from sandbox.entry.system import ensure_java
from sandbox.services.kafka import KafkaNode

HOST = "127.0.0.1"
READER, GUEST = "reader", "guest"
PASSWORDS: Mapping[str, str] = {READER: "open-sesame-41", GUEST: "let-me-see-17"}
_STORE_PASSWORD = "of-the-keystore"
_PORTS = ("kafka", "kafka-controller", "kafka-sasl", "kafka-tls")


@dataclass(frozen=True, slots=True)
class GuardedKafka:
    """A broker with an open listener for tests, and two guarded ones."""

    open_servers: str
    sasl_servers: str
    tls_servers: str
    ca: Path

    def properties(self, user: str, mechanism: str, *, tls: bool = False) -> dict[str, str]:
        """What a client of the guarded listeners needs, under librdkafka's names."""
        return {
            "bootstrap.servers": self.tls_servers if tls else self.sasl_servers,
            "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": PASSWORDS[user],
        } | ({"ssl.ca.location": str(self.ca)} if tls else {})

    def let_in(self, user: str, topic: str) -> None:
        """Give the user the rights that reading the topic takes."""
        client = AdminClient({"bootstrap.servers": self.open_servers})
        rights = (AclOperation.READ, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
        bindings = [
            AclBinding(
                ResourceType.TOPIC,
                topic,
                ResourcePatternType.LITERAL,
                f"User:{user}",
                "*",
                right,
                AclPermissionType.ALLOW,
            )
            for right in rights
        ]
        for each in client.create_acls(bindings).values():
            each.result(30)


@contextmanager
def guarded_kafka(directory: Path) -> Iterator[GuardedKafka]:
    """A running broker of this directory's own; stopped at the end."""
    home = Sandbox(directory).home
    home.ports.claim(*_PORTS)
    addresses = {name: f"{HOST}:{home.ports[name]}" for name in _PORTS}
    node = KafkaNode(
        home,
        "kafka",
        node_id=1,
        roles=("broker", "controller"),
        controller_port="kafka-controller",
        settings=_settings(addresses, _keystore(directory)),
    )
    try:
        node.start()
        _add_scram_users(addresses["kafka"])
        yield GuardedKafka(
            open_servers=addresses["kafka"],
            sasl_servers=addresses["kafka-sasl"],
            tls_servers=addresses["kafka-tls"],
            ca=directory / "ca.pem",
        )
    finally:
        node.stop()
        home.ports.release(*_PORTS)


def _settings(addresses: Mapping[str, str], keystore: Path) -> dict[str, str]:
    logins = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    plain = f"org.apache.kafka.common.security.plain.PlainLoginModule required {logins};"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    listeners = {
        "PLAINTEXT": addresses["kafka"],
        "SASL_PLAINTEXT": addresses["kafka-sasl"],
        "SASL_SSL": addresses["kafka-tls"],
    }
    shown = ",".join(f"{name}://{address}" for name, address in listeners.items())
    guarded: dict[str, str] = {}
    for listener in ("sasl_plaintext", "sasl_ssl"):
        prefix = f"listener.name.{listener}"
        guarded[f"{prefix}.plain.sasl.jaas.config"] = plain
        guarded[f"{prefix}.scram-sha-256.sasl.jaas.config"] = scram
        guarded[f"{prefix}.scram-sha-512.sasl.jaas.config"] = scram
    return guarded | {
        "listeners": f"{shown},CONTROLLER://{addresses['kafka-controller']}",
        "advertised.listeners": shown,
        "listener.security.protocol.map": ",".join(f"{name}:{name}" for name in listeners)
        + ",CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "ssl.keystore.location": str(keystore),
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.password": _STORE_PASSWORD,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


def _keystore(directory: Path) -> Path:
    """A key with a certificate that it signed itself; the certificate lies beside it as ca.pem."""
    keytool = str(ensure_java() / "bin" / "keytool")
    store = directory / "broker.p12"
    common = ["-keystore", str(store), "-storepass", _STORE_PASSWORD, "-alias", "broker"]
    key = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=broker", "-storetype", "PKCS12"]
    subprocess.run(
        [keytool, *key, "-ext", f"SAN=IP:{HOST}", "-validity", "30", *common],
        check=True,
        capture_output=True,
    )
    shown = subprocess.run(
        [keytool, "-exportcert", "-rfc", *common], check=True, capture_output=True
    )
    (directory / "ca.pem").write_bytes(shown.stdout)
    return store


def _add_scram_users(servers: str) -> None:
    client = AdminClient({"bootstrap.servers": servers})
    # One request may not change a user twice.
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        wanted = [
            UserScramCredentialUpsertion(
                user, ScramCredentialInfo(mechanism, 4096), password.encode()
            )
            for user, password in PASSWORDS.items()
        ]
        for each in client.alter_user_scram_credentials(wanted).values():
            each.result(30)
