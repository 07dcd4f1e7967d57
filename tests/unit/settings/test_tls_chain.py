"""A chain leaves in order, each certificate once, whatever the order in which it lies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from tallystick.errors import ConfigurationError
from tallystick.settings.kafka_connection import checked_properties
from tallystick.settings.kafka_tls import CERTIFICATE, KEY

TLS = {"bootstrap.servers": "k:9093", "security.protocol": "SSL"}
STORE_PASSWORD = "of-the-store-1"
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


class Own(NamedTuple):
    name: str
    key: Any
    certificate: x509.Certificate


def signed(name: str, by: Own | None = None, *, is_ca: bool = True) -> Own:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGUN)
        .not_valid_after(BEGUN + timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), True)
        .sign(by.key if by else key, hashes.SHA256())
    )
    return Own(name, key, certificate)


ROOT = signed("root")
MIDDLE = signed("middle", ROOT)
VERA = signed("vera", MIDDLE, is_ca=False)
OTHER = signed("other", MIDDLE, is_ca=False)
NAMESAKE = signed("middle")  # another authority of the same name


def pem(*chain: Own) -> str:
    return "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in chain)


def key_text(own: Own) -> str:
    text: bytes = own.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return text.decode()


def store(folder: Path, *others: Own) -> dict[str, str]:
    file = folder / "own.p12"
    file.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"vera", VERA.key, VERA.certificate, [each.certificate for each in others],
            BestAvailableEncryption(STORE_PASSWORD.encode()),
        )
    )  # fmt: skip
    return {"ssl.keystore.location": str(file), "ssl.keystore.password": STORE_PASSWORD}


@pytest.mark.parametrize(
    "given",
    [
        (VERA, MIDDLE, ROOT),
        (VERA, ROOT, MIDDLE),
        (ROOT, MIDDLE, VERA),
        (VERA, VERA, MIDDLE, ROOT, MIDDLE),
        (NAMESAKE, VERA, OTHER, ROOT, MIDDLE),
    ],
    ids=lambda chain: " ".join(each.name for each in chain),
)
def test_each_issuer_follows_what_it_has_issued(given: tuple[Own, ...]) -> None:
    found = checked_properties(TLS | {CERTIFICATE: pem(*given), KEY: key_text(VERA)})
    assert found[CERTIFICATE] == pem(VERA, MIDDLE, ROOT)


def test_a_chain_without_its_root_stays_so() -> None:
    found = checked_properties(TLS | {CERTIFICATE: pem(MIDDLE, VERA), KEY: key_text(VERA)})
    assert found[CERTIFICATE] == pem(VERA, MIDDLE)


def test_a_store_in_another_order_gives_the_same(tmp_path: Path) -> None:
    found = checked_properties(TLS | store(tmp_path, ROOT, VERA, MIDDLE, NAMESAKE))
    assert found[CERTIFICATE] == pem(VERA, MIDDLE, ROOT)


def test_a_store_with_a_certificate_of_another_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="one key; it has a certificate of CN=other"):
        checked_properties(TLS | store(tmp_path, OTHER, MIDDLE))


def test_two_keys_in_one_text_are_refused() -> None:
    both = key_text(VERA) + key_text(OTHER)
    with pytest.raises(ConfigurationError, match="one private key") as caught:
        checked_properties(TLS | {CERTIFICATE: pem(VERA), KEY: both})
    assert caught.value.setting == KEY
    assert "PRIVATE" not in str(caught.value)
