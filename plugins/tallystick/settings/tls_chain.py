"""A certificate's chain in the order that every client takes: our own first, each issuer behind it.

OpenSSL sorts what it is given; Java sends it as it is, and fails with one that is doubled, or out
of order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat


def chain_of(key: Any, found: Sequence[x509.Certificate]) -> list[x509.Certificate]:
    """The certificate of this private key, its issuer, and so on as far as they are there.

    Empty where none is of this key. What belongs to another chain is left out.
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
