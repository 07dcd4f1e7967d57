"""A Kafka connection's certificates and key: read from wherever they lie, handed on as PEM text.

Files, inline text and stores are told apart by their content, not by their names. The key comes out
as PKCS #8 without encryption, the one form that every client reads: Java 17 opens no key that
OpenSSL has encrypted. So it is a secret wherever it goes, and stays in memory here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import PublicKeyAlgorithmOID

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


def tls_texts(given: Mapping[str, str], wrong: Wrong) -> dict[str, str]:
    """Returns whom to trust and who we are: PEM text under CA, CERTIFICATE and, if any, KEY.

    Raises what `wrong` makes of a file that can't be read, or that holds something else.
    """
    _require_owners(given, wrong)
    found: dict[str, str] = {}
    trusted = _one_of(given, (CA, _CA_FILE, _TRUST_STORE), wrong)
    if trusted is not None:
        store = Store(given, trusted, _TRUST_PASSWORD, wrong)
        found[CA] = pem_text(store.certificates())
    certificate = _one_of(given, (CERTIFICATE, _CERTIFICATE_FILE, _KEY_STORE), wrong)
    key = certificate if certificate == _KEY_STORE else _one_of(given, (KEY, _KEY_FILE), wrong)
    if (certificate is None) != (key is None):
        lacking = CERTIFICATE if certificate is None else KEY
        raise wrong(lacking, None, "both, a certificate and its key, or neither")
    if certificate is not None and key is not None:
        password = _STORE_PASSWORD if key == _KEY_STORE else _KEY_PASSWORD
        own = Store(given, certificate, password, wrong).certificates()
        private = Store(given, key, password, wrong).key()
        chain = chain_of(private, own)
        if not chain:
            raise wrong(key, "of another certificate", f"the key of {certificate}")
        if chain[0].public_key_algorithm_oid == PublicKeyAlgorithmOID.RSASSA_PSS:
            raise wrong(certificate, HIDDEN, f"a certificate of a key that is {KINDS}; not RSA-PSS")
        others = strangers(chain, own) if key == _KEY_STORE else []
        if others:
            # Which of several keys a store shows is for each library to choose.
            name = others[0].subject.rfc4514_string()
            raise wrong(key, HIDDEN, f"a store with one key; it has a certificate of {name}, too")
        found[CERTIFICATE] = pem_text(chain)
        found[KEY] = private.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        ).decode("ascii")
    return found


def authorities_in(given: Mapping[str, str], key: str, wrong: Wrong) -> str:
    """The certificates of the PEM file that this property names, without what stands between."""
    store = Store(given, key, "", wrong)
    if not store.is_pem:
        raise wrong(key, HIDDEN, "a PEM file with certificates")
    return pem_text(store.certificates())


def _require_owners(given: Mapping[str, str], wrong: Wrong) -> None:
    """Raise for a key beside a store that has one, and for a password of nothing.

    Whoever gave them believes that they are used.
    """
    for key in (KEY, _KEY_FILE):
        if given.get(_KEY_STORE) and given.get(key):
            raise wrong(key, HIDDEN, f"nothing beside {_KEY_STORE}, which has the key")
    owners = {
        _TRUST_PASSWORD: (_TRUST_STORE,),
        _STORE_PASSWORD: (_KEY_STORE,),
        _KEY_PASSWORD: (KEY, _KEY_FILE, _KEY_STORE),
    }
    for password, keys in owners.items():
        if given.get(password) and not any(given.get(key) for key in keys):
            raise wrong(password, HIDDEN, f"nothing without {' or '.join(keys)}")
    # Java's name for the key in a store. PKCS #12 has one password for both.
    if given.get(_KEY_STORE) and given.get(_KEY_PASSWORD, "") not in (
        "",
        given.get(_STORE_PASSWORD, ""),
    ):
        raise wrong(_KEY_PASSWORD, HIDDEN, f"the same as {_STORE_PASSWORD}, or nothing")


def _one_of(given: Mapping[str, str], keys: tuple[str, ...], wrong: Wrong) -> str | None:
    """The one that is given; None for none."""
    found = [key for key in keys if given.get(key)]
    if len(found) > 1:
        raise wrong(found[1], HIDDEN, f"one of {' and '.join(found)}, not both")
    return found[0] if found else None


def chain_of(key: Any, found: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    """The certificate of this private key, its issuer, and so on as far as they are there.

    Empty where none is of this key. What belongs to another chain is left out. OpenSSL sorts what
    it is given; Java sends it as it is, and fails with one that is doubled, or out of order.
    """
    own = _public(key)
    chain = [each for each in found if _public(each) == own][:1]
    while chain:
        rest = (each for each in found if each not in chain)
        issuer = next((each for each in rest if _has_issued(each, chain[-1])), None)
        if issuer is None:
            break
        chain.append(issuer)
    return chain


def strangers(
    chain: Sequence[x509.Certificate], found: Sequence[x509.Certificate]
) -> list[x509.Certificate]:
    """Certificates of somebody else: no part of the chain, and no authority's."""
    return [each for each in found if each not in chain and not _is_authority(each)]


def pem_text(certificates: Sequence[x509.Certificate]) -> str:
    """The certificates one after the other, and nothing beside them."""
    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates).decode("ascii")


def _has_issued(issuer: x509.Certificate, issued: x509.Certificate) -> bool:
    try:
        issued.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        found = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, ValueError):
        return False
    return found.value.ca


def _public(of: Any) -> bytes:
    """The public key, of a private key or a certificate."""
    found: bytes = of.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return found
