"""A property of TLS names or holds PEM or a PKCS #12 store, told by its content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key, pkcs12

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import HIDDEN
from tallystick.settings.extras import shown_path

KINDS: Final = "RSA, or EC on P-256, P-384, P-521"
Wrong = Callable[[str, object, str], ConfigurationError]
"""Makes the error of a property, its value and what is accepted."""
_JAVA_STORES: Final = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
# Java has no other curves. Its PEM reader knows DSA, too, and TLS 1.3 does not.
_CURVES: Final = ("secp256r1", "secp384r1", "secp521r1")
_UNREADABLE: Final = (ValueError, TypeError, UnsupportedAlgorithm)


class Store:
    """One property holds or names this, whatever the form."""

    def __init__(self, given: Mapping[str, str], key: str, password: str, wrong: Wrong) -> None:
        self._key, self._wrong, self._password_key = key, wrong, password
        self._shown = HIDDEN if key.endswith(".pem") else given[key]
        self._data = self._read(given[key])
        self._password = given[password].encode() if given.get(password) else None

    def certificates(self) -> list[x509.Certificate]:
        """All certificates, our own first; at least one."""
        accepted = "certificates: PEM, or a PKCS #12 store"
        try:
            if self.is_pem:
                return x509.load_pem_x509_certificates(self._data)
            opened = self._opened()
            each = [opened.cert] if opened.cert else []
            found = [one.certificate for one in [*each, *opened.additional_certs]]
        except _UNREADABLE as failure:
            told = accepted if self.is_pem else self._openable(accepted)
            raise self._wrong(self._key, self._shown, told) from failure
        if not found:
            raise self._wrong(self._key, self._shown, accepted)
        return found

    def key(self) -> Any:
        """The private key, opened."""
        accepted = f"one private key ({KINDS}): PEM, or a PKCS #12 store"
        try:
            found = self._pem_key() if self.is_pem else self._opened().key
        except _UNREADABLE as failure:
            raise self._wrong(self._key, self._shown, self._openable(accepted)) from failure
        kind = _unusable_kind(found)
        if kind:
            raise self._wrong(self._key, self._shown, f"{accepted}; this is {kind}")
        return found

    @property
    def is_pem(self) -> bool:
        """True for text, whatever stands around the certificates or keys in it."""
        return b"-----BEGIN " in self._data

    def _pem_key(self) -> Any:
        if self._data.count(b"PRIVATE KEY-----") > 2:  # its first line and its last
            raise ValueError("several keys")
        try:
            return load_pem_private_key(self._data, self._password)
        except TypeError:  # it is not encrypted, and a password is given; or the other way round
            return load_pem_private_key(self._data, None)

    def _opened(self) -> pkcs12.PKCS12KeyAndCertificates:
        return pkcs12.load_pkcs12(self._data, self._password)

    def _openable(self, accepted: str) -> str:
        """Says what is accepted, and where its password belongs."""
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


def _unusable_kind(key: object) -> str | None:
    """Says what it is where not every client can use it; None for a key that all can."""
    if isinstance(key, rsa.RSAPrivateKey):
        return None
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return None if key.curve.name in _CURVES else f"EC on {key.curve.name}"
    return "no key" if key is None else type(key).__name__.removesuffix("PrivateKey")
