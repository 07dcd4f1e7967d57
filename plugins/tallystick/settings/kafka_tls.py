"""A Kafka connection's certificates and key: read from wherever they lie, handed on as PEM text.

Files, inline text and stores are told apart by their content, not by their names. The key comes out
as PKCS #8 without encryption, the one form that every client reads: Java 17 opens no key that
OpenSSL has encrypted. So it is a secret wherever it goes, and stays in memory here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    pkcs12,
)

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import HIDDEN
from tallystick.settings.extras import shown_path

Wrong = Callable[[str, object, str], ConfigurationError]
CA: Final = "ssl.ca.pem"
CERTIFICATE: Final = "ssl.certificate.pem"
KEY: Final = "ssl.key.pem"
_CA_FILE, _TRUST_STORE = "ssl.ca.location", "ssl.truststore.location"
_CERTIFICATE_FILE, _KEY_FILE = "ssl.certificate.location", "ssl.key.location"
_KEY_STORE: Final = "ssl.keystore.location"
_KEY_PASSWORD: Final = "ssl.key.password"
_TRUST_PASSWORD, _STORE_PASSWORD = "ssl.truststore.password", "ssl.keystore.password"
SOURCES: Final = (
    _CA_FILE, CA, _TRUST_STORE, _TRUST_PASSWORD,
    _CERTIFICATE_FILE, CERTIFICATE, _KEY_FILE, KEY, _KEY_PASSWORD, _KEY_STORE, _STORE_PASSWORD,
)  # fmt: skip
"""All properties that name or hold a certificate, a key or a password of one."""
_JAVA_STORES: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
# Java's PEM reader of Kafka knows these kinds alone.
_KINDS: Final = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, dsa.DSAPrivateKey)
_UNREADABLE: Final = (ValueError, TypeError, UnsupportedAlgorithm)


def tls_texts(given: Mapping[str, str], wrong: Wrong) -> dict[str, str]:
    """Whom to trust and who we are, as PEM text under CA, CERTIFICATE and KEY; no key is no entry.

    Raises what `wrong` makes of a file that can't be read, or that holds something else.
    """
    found: dict[str, str] = {}
    trusted = _one_of(given, (CA, _CA_FILE, _TRUST_STORE), wrong)
    if trusted is not None:
        store = _Store(given, trusted, _TRUST_PASSWORD, wrong)
        found[CA] = _text(store.certificates())
    certificate = _one_of(given, (CERTIFICATE, _CERTIFICATE_FILE, _KEY_STORE), wrong)
    key = certificate if certificate == _KEY_STORE else _one_of(given, (KEY, _KEY_FILE), wrong)
    if (certificate is None) != (key is None):
        lacking = CERTIFICATE if certificate is None else KEY
        raise wrong(lacking, None, "both, a certificate and its key, or neither")
    if certificate is not None and key is not None:
        password = _STORE_PASSWORD if key == _KEY_STORE else _KEY_PASSWORD
        chain = _Store(given, certificate, password, wrong).certificates()
        private = _Store(given, key, password, wrong).key()
        if _public(private) != _public(chain[0]):
            raise wrong(key, "of another certificate", f"the key of {certificate}")
        found[CERTIFICATE] = _text(chain)
        found[KEY] = private.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ).decode("ascii")
    return found


class _Store:
    """What one property holds or names, whatever the form."""

    def __init__(self, given: Mapping[str, str], key: str, password: str, wrong: Wrong) -> None:
        self._key, self._wrong, self._password_key = key, wrong, password
        self._shown = HIDDEN if key.endswith(".pem") else given[key]
        self._data = self._read(given[key])
        self._password = given[password].encode() if given.get(password) else None

    def certificates(self) -> list[x509.Certificate]:
        """All certificates, our own first; at least one."""
        accepted = "certificates: PEM, or a PKCS #12 store"
        try:
            if self._is_pem:
                return x509.load_pem_x509_certificates(self._data)
            opened = self._opened()
            each = [opened.cert] if opened.cert else []
            found = [one.certificate for one in [*each, *opened.additional_certs]]
        except _UNREADABLE as failure:
            told = accepted if self._is_pem else self._openable(accepted)
            raise self._wrong(self._key, self._shown, told) from failure
        if not found:
            raise self._wrong(self._key, self._shown, accepted)
        return found

    def key(self) -> Any:
        """The private key, opened."""
        accepted = "a private key (RSA, EC or DSA): PEM, or a PKCS #12 store"
        try:
            found = self._pem_key() if self._is_pem else self._opened().key
        except _UNREADABLE as failure:
            raise self._wrong(self._key, self._shown, self._openable(accepted)) from failure
        if not isinstance(found, _KINDS):
            raise self._wrong(self._key, self._shown, accepted)
        return found

    @property
    def _is_pem(self) -> bool:
        return b"-----BEGIN " in self._data

    def _pem_key(self) -> Any:
        try:
            return load_pem_private_key(self._data, self._password)
        except TypeError:  # it is not encrypted, and a password is given; or the other way round
            return load_pem_private_key(self._data, None)

    def _opened(self) -> pkcs12.PKCS12KeyAndCertificates:
        return pkcs12.load_pkcs12(self._data, self._password)

    def _openable(self, accepted: str) -> str:
        """What is accepted, and where the password of it belongs."""
        state = "is given and may be wrong" if self._password else "is not given"
        return f"{accepted} ({self._password_key} {state})"

    def _read(self, value: str) -> bytes:
        if self._key.endswith(".pem"):
            return value.encode()
        try:
            data = Path(value).read_bytes()
        except (OSError, ValueError) as error:  # ValueError: no path at all, it holds a NUL
            reason = error.strerror if isinstance(error, OSError) else "a NUL in it"
            accepted = f"the path of a file that this user may read ({reason})"
            # Python's own error quotes the whole value, which may be a key in the wrong field.
            raise self._wrong(self._key, shown_path(value), accepted) from None
        if data.startswith(_JAVA_STORES):
            raise self._wrong(
                self._key,
                value,
                "PEM or a PKCS #12 store; this is a JKS store. Convert it: keytool -importkeystore"
                f" -srckeystore {value} -destkeystore {value}.p12 -deststoretype PKCS12",
            )
        return data


def _one_of(given: Mapping[str, str], keys: tuple[str, ...], wrong: Wrong) -> str | None:
    """The one that is given; None for none."""
    found = [key for key in keys if given.get(key)]
    if len(found) > 1:
        raise wrong(found[1], HIDDEN, f"one of {' and '.join(found)}, not both")
    return found[0] if found else None


def _text(certificates: list[x509.Certificate]) -> str:
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates).decode("ascii")


def _public(of: Any) -> bytes:
    """The public key, of a private key or a certificate."""
    found: bytes = of.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found
