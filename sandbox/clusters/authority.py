"""A certificate authority of the sandbox's own, as companies have one, and what it has signed."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from sandbox.ports import HOST

_DAYS: Final = 365
_NAME: Final = "Tallystick sandbox"


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, each in a PEM file; the key is PKCS #8, not encrypted."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into one folder when they are first asked for; what is there stays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def ca(self) -> Path:
        """The file with its own certificate."""
        return self._own.certificate

    @property
    def _own(self) -> Identity:
        found = self._identity("ca")
        if not found.certificate.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._sign("ca", _subject(_NAME), None)
        return found

    def identity(self, name: str) -> Identity:
        """Of this common name; good for this machine's address too, for servers and for clients."""
        if not (self._folder / f"{name}.pem").exists():
            self._sign(name, _subject(name), self._own)
        return self._identity(name)

    def key_store(self, name: str, password: str) -> Path:
        """The same in a PKCS #12 store, with the authority's own certificate."""
        identity, store = self.identity(name), self._folder / f"{name}.p12"
        key = load_pem_private_key(identity.key.read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        certificate = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
        authority = x509.load_pem_x509_certificate(self.ca.read_bytes())
        encryption = BestAvailableEncryption(password.encode())
        data = pkcs12.serialize_key_and_certificates(
            name.encode(), key, certificate, [authority], encryption
        )
        _write_private(store, data)
        return store

    def _identity(self, name: str) -> Identity:
        return Identity(self._folder / f"{name}.pem", self._folder / f"{name}.key")

    def _sign(self, name: str, subject: x509.Name, issuer: Identity | None) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        signer, issued_by = key, subject
        if issuer is not None:
            loaded = load_pem_private_key(issuer.key.read_bytes(), None)
            assert isinstance(loaded, rsa.RSAPrivateKey)
            signer = loaded
            issued_by = x509.load_pem_x509_certificate(issuer.certificate.read_bytes()).subject
        now = datetime.now(UTC)
        places: list[x509.GeneralName] = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address(HOST)),
        ]
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issued_by)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=_DAYS))
            .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), True)
            .add_extension(x509.SubjectAlternativeName(places), False)
            .sign(signer, hashes.SHA256())
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        identity = self._identity(name)
        _write_private(identity.key, private)
        identity.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _write_private(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
