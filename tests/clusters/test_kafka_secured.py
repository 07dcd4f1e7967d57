"""A Kafka that asks who comes: each way to be let in lands a feed, each refusal names its cause.

Spark's client, kafka-python and librdkafka all take part: a landing reads with the first, proves
with the second, and compares a sample with the third.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from sandbox import Sandbox
from sandbox.clusters.authority import Authority
from sandbox.clusters.kafka_tls import GUEST, MECHANISMS, READING, USER, KafkaTls
from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import BrokerUnavailable, RightMissing, SourceRefused
from tallystick.spark.kafka_access import kafka_access, secrets_text
from tests.support.kafka_producers import TransactionalProducer, messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.sandbox_fixtures import running
from tests.support.whole_way import Way, environ_of

KEY_PASSWORD = "of-the-key-1"
CONNECTION = "(connection kafka_default)"
Properties = dict[str, str]
NewWay = Callable[[Mapping[str, str]], Way]


@pytest.fixture(scope="module")
def guarded(sandbox: Sandbox) -> Iterator[KafkaTls]:
    with running(sandbox, KafkaTls) as found:
        yield found


@pytest.fixture
def new_way(
    guarded: KafkaTls, hdfs: Any, spark_connect: str, ledger_dsn: str, tmp_path: Path
) -> NewWay:
    """Makes a topic with aborted records, and a feed that reads it by these properties."""
    servers = guarded.broker.address

    def made(properties: Mapping[str, str]) -> Way:
        topic = create_topic(servers, partitions=2)
        produce(servers, topic, messages(100), partition=0)
        TransactionalProducer(servers, topic).commit(messages(5)).abort(messages(5))
        environ = environ_of(servers, hdfs, ledger_dsn, spark_connect)
        return Way(topic, environ | connections(properties, spark_connect, tmp_path))

    return made


def connections(properties: Mapping[str, str], spark_connect: str, folder: Path) -> dict[str, str]:
    """Kafka's connection, and the server's, whose secrets lie in a file beside it."""
    placed = folder / "kafka.properties"
    placed.touch(mode=0o600)
    placed.write_text(secrets_text(kafka_access(properties).secrets), encoding="utf-8")
    spark = {
        "conn_type": "spark_connect",
        "host": spark_connect,
        "extra": {"kafka-secrets": str(placed)},
    }
    kafka = {"conn_type": "kafka", "extra": dict(properties)}
    return {
        "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(kafka),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
    }


def encrypted_key(guarded: KafkaTls, folder: Path) -> Properties:
    """As OpenSSL encrypts a key unless it is told otherwise (PBES2): Java 17 can't open it."""
    found, path = guarded.properties("SSL"), folder / "encrypted.key"
    argv = ["openssl", "pkcs8", "-topk8", "-in", found["ssl.key.location"], "-out", str(path)]
    subprocess.run([*argv, "-passout", f"pass:{KEY_PASSWORD}"], check=True, capture_output=True)
    assert "ENCRYPTED" in path.read_text()
    return found | {"ssl.key.location": str(path), "ssl.key.password": KEY_PASSWORD}


def stores(guarded: KafkaTls, folder: Path) -> Properties:
    """Both stores as PKCS #12, and no PEM file."""
    found = guarded.properties("SSL")
    store = str(guarded.authority.key_store(USER, KEY_PASSWORD))
    for part in ("ca", "certificate", "key"):
        del found[f"ssl.{part}.location"]
    return found | {
        "ssl.truststore.location": store,
        "ssl.truststore.password": KEY_PASSWORD,
        "ssl.keystore.location": store,
        "ssl.keystore.password": KEY_PASSWORD,
    }


def inline(guarded: KafkaTls, folder: Path) -> Properties:
    found = guarded.properties("SSL")
    for part in ("ca", "certificate", "key"):
        found[f"ssl.{part}.pem"] = Path(found.pop(f"ssl.{part}.location")).read_text()
    return found


Given = Callable[[KafkaTls, Path], Properties]
WAYS: dict[str, Given] = {
    **{
        f"{protocol} {mechanism}": lambda guarded, _, p=protocol, m=mechanism: guarded.properties(
            p, m
        )
        for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
        for mechanism in MECHANISMS
    },
    "SSL, PEM files": lambda guarded, _: guarded.properties("SSL"),
    "SSL, an encrypted key": encrypted_key,
    "SSL, PKCS #12 stores": stores,
    "SSL, inline PEM": inline,
}


@pytest.mark.parametrize("given", WAYS)
def test_each_way_to_be_let_in_lands_and_proves_a_feed(
    given: str, guarded: KafkaTls, new_way: NewWay, tmp_path: Path
) -> None:
    way = new_way(WAYS[given](guarded, tmp_path))

    way.landed()
    report = way.reconciled(Level.L3)

    assert report.verdict is Verdict.PROVEN_OK
    assert [each.value for each in way.rows() if each.partition == 0][:100] == [
        each.value for each in messages(100)
    ]
    with way.services() as services:
        snapshot = services.broker.snapshot(way.topic)
    ends = {number: (0, each.high_watermark) for number, each in snapshot.partitions.items()}
    assert way.rows() == way.produced(ends)


def test_read_and_describe_configs_on_the_topic_are_all_that_a_feed_needs(
    guarded: KafkaTls, new_way: NewWay
) -> None:
    way = new_way(guarded.properties(user=GUEST))
    guarded.broker.allow(GUEST, way.topic, *READING)

    way.landed()

    assert way.reconciled(Level.L3).verdict is Verdict.PROVEN_OK


LACKING: dict[str, tuple[tuple[AclOperation, ...], str]] = {
    "none": ((), "Read"),
    "Read alone": ((AclOperation.READ,), "DescribeConfigs"),
    "DescribeConfigs alone": ((AclOperation.DESCRIBE_CONFIGS,), "Read"),
    "Describe alone": ((AclOperation.DESCRIBE,), "Read and DescribeConfigs"),
    "all but Read": ((AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS), "Read"),
}


@pytest.mark.parametrize("given", LACKING)
def test_a_right_that_is_missing_is_named_before_anything_is_landed(
    given: str, guarded: KafkaTls, new_way: NewWay
) -> None:
    rights, missing = LACKING[given]
    way = new_way(guarded.properties(user=GUEST))
    if rights:
        guarded.broker.allow(GUEST, way.topic, *rights)

    with pytest.raises(RightMissing) as caught:
        way.land()

    told = str(caught.value)
    assert f"has no right {missing} on topic '{way.topic}'" in told
    assert CONNECTION in told
    assert not caught.value.retry
    assert not way.rows()


def test_a_frontier_needs_read_on_its_group(guarded: KafkaTls, new_way: NewWay) -> None:
    way = new_way(guarded.properties(user=GUEST))
    guarded.broker.allow(GUEST, way.topic, *READING)
    group = f"{way.topic}-frontier"
    feed = way.feed(source={"export_group": group})

    with way.services(feed=feed) as services:
        assert services.frontier_group is not None
        with pytest.raises(RightMissing) as caught:
            services.frontier_group.show(way.name, way.topic, {0: 1})
        assert f"no right Read on group '{group}'" in str(caught.value)
        assert CONNECTION in str(caught.value)
        guarded.broker.allow(GUEST, group, AclOperation.READ, kind=ResourceType.GROUP)
        services.frontier_group.show(way.name, way.topic, {0: 1})


def without_own_certificate(guarded: KafkaTls, folder: Path) -> Properties:
    found = guarded.properties("SSL")
    del found["ssl.certificate.location"], found["ssl.key.location"]
    return found


def of_a_stranger(guarded: KafkaTls, folder: Path) -> Properties:
    """A certificate that another authority has signed."""
    own = Authority(folder / "elsewhere").identity(USER)
    return guarded.properties("SSL") | {
        "ssl.certificate.location": str(own.certificate),
        "ssl.key.location": str(own.key),
    }


def untrusting(guarded: KafkaTls, folder: Path) -> Properties:
    return guarded.properties() | {
        "ssl.ca.location": str(Authority(folder / "elsewhere").ca),
    }


def wrong_password(mechanism: str, key: str = "sasl.password") -> Given:
    return lambda guarded, _: guarded.properties("SASL_SSL", mechanism) | {key: "wr0ng-pa55word"}


def endpoint_untrusted(guarded: KafkaTls, folder: Path) -> Properties:
    found = guarded.properties("SASL_SSL", "OAUTHBEARER")
    return found | {"https.ca.location": str(Authority(folder / "elsewhere").ca)}


def password_in_clear(guarded: KafkaTls, folder: Path) -> Properties:
    """TLS is asked for at a listener that speaks none."""
    plain = guarded.properties("SASL_PLAINTEXT")["bootstrap.servers"]
    return guarded.properties("SASL_SSL") | {"bootstrap.servers": plain}


REFUSED: dict[str, tuple[Given, str]] = {
    "a wrong password, PLAIN": (wrong_password("PLAIN"), "uthentication"),
    "a wrong password, SCRAM": (wrong_password("SCRAM-SHA-512"), "uthentication"),
    "a wrong secret": (
        wrong_password("OAUTHBEARER", "sasl.oauthbearer.client.secret"), "gives no token",
    ),
    "an endpoint that is not trusted": (endpoint_untrusted, "certificate is not trusted"),
    "an authority of nobody's": (untrusting, "CERTIFICATE_VERIFY_FAILED"),
    "no certificate of one's own": (without_own_certificate, "CERTIFICATE"),
    "a certificate of nobody's": (of_a_stranger, "CERTIFICATE"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_who_is_not_let_in_is_refused_at_once_by_the_connection_s_name(
    case: str, guarded: KafkaTls, new_way: NewWay, tmp_path: Path
) -> None:
    given, words = REFUSED[case]
    way = new_way(given(guarded, tmp_path))

    with pytest.raises(SourceRefused) as caught:
        way.land()

    told = str(caught.value)
    assert words in told
    assert CONNECTION in told
    assert not caught.value.retry
    assert "wr0ng-pa55word" not in f"{told} {caught.value!r}"


def test_tls_at_a_listener_without_it_sends_no_password(
    guarded: KafkaTls, new_way: NewWay, tmp_path: Path
) -> None:
    way = new_way(password_in_clear(guarded, tmp_path))
    with pytest.raises((SourceRefused, BrokerUnavailable)) as caught:
        way.land()
    assert CONNECTION in str(caught.value)
