"""Certificates and keys come out the same, and in order, in whatever form they lie."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from sandbox.clusters.authority import Authority
from sandbox.entry.system import ensure_java
from tallystick.errors import ConfigurationError
from tallystick.settings.kafka_properties import checked_properties
from tallystick.settings.kafka_tls import CA, CERTIFICATE, KEY

PASSWORD = "of-the-key-1"
TLS = {"bootstrap.servers": "k:9093", "security.protocol": "SSL"}


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def whole(authority: Authority) -> dict[str, str]:
    """What everything must come out as."""
    own = authority.identity("vera")
    return {
        CA: authority.ca.read_text(),
        CERTIFICATE: own.certificate.read_text(),
        KEY: own.key.read_text(),
    }


def texts_of(properties: dict[str, str]) -> dict[str, str]:
    found = checked_properties(TLS | properties)
    return {key: each for key, each in found.items() if key in (CA, CERTIFICATE, KEY)}


def run(program: str, *arguments: str) -> None:
    subprocess.run([program, *arguments], check=True, capture_output=True)


def keytool(*arguments: str) -> None:
    run(str(ensure_java() / "bin" / "keytool"), *arguments, "-noprompt")


def own_files(authority: Authority) -> dict[str, str]:
    own = authority.identity("vera")
    return {
        "ssl.ca.location": str(authority.ca),
        "ssl.certificate.location": str(own.certificate),
        "ssl.key.location": str(own.key),
    }


def rewritten(
    authority: Authority, form: PrivateFormat, encryption: KeySerializationEncryption
) -> dict[str, str]:
    """The files, with the key in another form."""
    given = own_files(authority)
    key = load_pem_private_key(Path(given["ssl.key.location"]).read_bytes(), None)
    other = authority.ca.with_name("other.key")
    other.write_bytes(key.private_bytes(Encoding.PEM, form, encryption))
    return given | {"ssl.key.location": str(other), "ssl.key.password": PASSWORD}


def of_java(authority: Authority, kind: str) -> dict[str, str]:
    """Two stores as keytool makes them: whom to trust, and who we are."""
    trust, own = authority.ca.with_name("trust"), authority.ca.with_name("own")
    into = ("-storetype", kind, "-storepass", PASSWORD, "-keystore", str(trust))
    keytool("-importcert", "-alias", "ca", "-file", str(authority.ca), *into)
    source = ("-srckeystore", str(authority.key_store("vera", PASSWORD)), "-srcstorepass", PASSWORD)
    target = ("-destkeystore", str(own), "-deststoretype", kind, "-deststorepass", PASSWORD)
    keytool("-importkeystore", *source, *target)
    return {
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": str(own),
        "ssl.keystore.password": PASSWORD,
    }


def of_openssl(authority: Authority) -> dict[str, str]:
    given = own_files(authority)
    other = authority.ca.with_name("openssl.key")
    source = ("-in", given["ssl.key.location"])
    target = ("-out", str(other), "-passout", f"pass:{PASSWORD}")
    run("openssl", "pkcs8", "-topk8", *source, *target)
    return given | {"ssl.key.location": str(other), "ssl.key.password": PASSWORD}


def inline(authority: Authority) -> dict[str, str]:
    names = {
        "ssl.ca.location": CA,
        "ssl.certificate.location": CERTIFICATE,
        "ssl.key.location": KEY,
    }
    return {names[key]: Path(path).read_text() for key, path in own_files(authority).items()}


def under_java_s_names(authority: Authority) -> dict[str, str]:
    names = {
        CA: "ssl.truststore.certificates",
        CERTIFICATE: "ssl.keystore.certificate.chain",
        KEY: "ssl.keystore.key",
    }
    return {names[key]: text for key, text in inline(authority).items()}


ENCRYPTED = BestAvailableEncryption(PASSWORD.encode())
FORMS: dict[str, Callable[[Authority], dict[str, str]]] = {
    "PEM files, PKCS #8": own_files,
    "PKCS #8, encrypted": lambda a: rewritten(a, PrivateFormat.PKCS8, ENCRYPTED),
    "PKCS #8, as OpenSSL encrypts it": of_openssl,
    "PKCS #1": lambda a: rewritten(a, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
    "PKCS #1, encrypted": lambda a: rewritten(a, PrivateFormat.TraditionalOpenSSL, ENCRYPTED),
    "inline PEM": inline,
    "inline PEM under Java's names": under_java_s_names,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(form: str, authority: Authority, whole: dict[str, str]) -> None:
    assert texts_of(FORMS[form](authority)) == whole


def test_a_store_of_java_gives_the_same(authority: Authority, whole: dict[str, str]) -> None:
    found = texts_of(of_java(authority, "PKCS12"))
    assert found[CA] == whole[CA]
    assert found[KEY] == whole[KEY]
    assert found[CERTIFICATE] == whole[CERTIFICATE] + whole[CA], "the chain, our own first"


def test_what_is_checked_once_stays_as_it_is(authority: Authority) -> None:
    found = checked_properties(TLS | own_files(authority))
    assert checked_properties(found) == found


def test_a_jks_store_is_refused_with_the_command_that_converts_it(authority: Authority) -> None:
    given = of_java(authority, "JKS")
    trust = given["ssl.truststore.location"]
    with pytest.raises(ConfigurationError) as caught:
        texts_of(given)
    command = (
        f"keytool -importkeystore -srckeystore {trust} -destkeystore {trust}.p12"
        " -deststoretype PKCS12"
    )
    assert command in str(caught.value)

    passwords = ("-srcstorepass", PASSWORD, "-deststorepass", PASSWORD)
    keytool(*command.split()[1:], *passwords)
    store = {"ssl.truststore.location": f"{trust}.p12", "ssl.truststore.password": PASSWORD}
    assert texts_of(store) == {CA: authority.ca.read_text()}


def another_key(authority: Authority) -> dict[str, str]:
    return own_files(authority) | {"ssl.key.location": str(authority.identity("other").key)}


def of_kind(private: Any) -> Callable[[Authority], dict[str, str]]:
    def given(authority: Authority) -> dict[str, str]:
        path = authority.ca.with_name("kind.key")
        path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return own_files(authority) | {"ssl.key.location": str(path)}

    return given


def pss(authority: Authority) -> dict[str, str]:
    key, own = (str(authority.ca.with_name(name)) for name in ("pss.key", "pss.pem"))
    run("openssl", "genpkey", "-algorithm", "RSA-PSS", "-out", key)
    run("openssl", "req", "-x509", "-new", "-key", key, "-out", own, "-subj", "/CN=vera")
    return {"ssl.certificate.location": own, "ssl.key.location": key}


def wrong_password(authority: Authority) -> dict[str, str]:
    return of_openssl(authority) | {"ssl.key.password": "not-the-pa55word"}


def no_password(authority: Authority) -> dict[str, str]:
    found = of_openssl(authority)
    del found["ssl.key.password"]
    return found


def without(name: str) -> Callable[[Authority], dict[str, str]]:
    return lambda a: {key: each for key, each in own_files(a).items() if key != name}


REFUSED: dict[str, tuple[Callable[[Authority], dict[str, str]], str, str]] = {
    "another's key": (another_key, "ssl.key.location", "the key of ssl.certificate.location"),
    "a kind that Java's client can't read": (
        of_kind(ed25519.Ed25519PrivateKey.generate()), "ssl.key.location", "this is Ed25519",
    ),
    "a kind that TLS 1.3 doesn't know": (
        of_kind(dsa.generate_private_key(1024)), "ssl.key.location", "this is DSA",
    ),
    "a curve that Java doesn't know": (
        of_kind(ec.generate_private_key(ec.SECP256K1())), "ssl.key.location", "EC on secp256k1",
    ),
    "a certificate of RSA-PSS": (pss, "ssl.certificate.location", "not RSA-PSS"),
    "a wrong password": (
        wrong_password, "ssl.key.location", "ssl.key.password is given and may be wrong",
    ),
    "no password": (no_password, "ssl.key.location", "ssl.key.password is not given"),
    "a certificate alone": (
        without("ssl.key.location"), KEY, "both, a certificate and its key, or neither",
    ),
    "a key alone": (
        without("ssl.certificate.location"), CERTIFICATE, "both, a certificate and its key",
    ),
    "no such file": (
        lambda a: own_files(a) | {"ssl.ca.location": "/no/such.pem"},
        "ssl.ca.location", r"may read \(No such file or directory\)",
    ),
    "no certificate": (
        lambda a: own_files(a) | {"ssl.ca.location": "/etc/hosts"},
        "ssl.ca.location", "PEM, or a PKCS #12 store",
    ),
    "broken inline text": (
        lambda a: {CA: "-----BEGIN CERTIFICATE-----\nMIIB\n"}, CA, "certificates: PEM",
    ),
    "a key beside a store": (
        lambda a: own_files(a) | {"ssl.certificate.location": "", "ssl.keystore.location": "/x"},
        "ssl.key.location", "nothing beside ssl.keystore.location",
    ),
    "another password of the key in a store": (
        lambda a: {
            "ssl.keystore.location": str(a.key_store("vera", PASSWORD)),
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": "not-the-pa55word",
        },
        "ssl.key.password", "the same as ssl.keystore.password",
    ),
    "a password of no key": (
        lambda a: {"ssl.ca.location": str(a.ca), "ssl.key.password": "not-the-pa55word"},
        "ssl.key.password", "nothing without ssl.key.pem or ssl.key.location",
    ),
    "a password of no store": (
        lambda a: own_files(a) | {"ssl.truststore.password": "not-the-pa55word"},
        "ssl.truststore.password", "nothing without ssl.truststore.location",
    ),
    "a password of no key store": (
        lambda a: own_files(a) | {"ssl.keystore.password": "not-the-pa55word"},
        "ssl.keystore.password", "nothing without ssl.keystore.location",
    ),
    "two authorities": (
        lambda a: own_files(a) | {CA: "x"}, "ssl.ca.location", "one of .* not both",
    ),
    "a revocation list": (
        lambda a: own_files(a) | {"ssl.crl.location": "/x"}, "ssl.crl.location", "revocation",
    ),
    "certificates that nobody would look at": (
        lambda a: own_files(a) | {"security.protocol": "PLAINTEXT"},
        "security.protocol", "SSL, SASL_SSL, because ssl.ca.location is given",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_named(case: str, authority: Authority) -> None:
    given, key, words = REFUSED[case]
    with pytest.raises(ConfigurationError, match=words) as caught:
        texts_of(given(authority))
    assert caught.value.setting == key
    shown = f"{caught.value!r} {caught.value}"
    assert "PRIVATE KEY" not in shown
    assert "pa55word" not in shown


def test_a_chain_in_one_file_with_its_key_is_enough(
    authority: Authority, whole: dict[str, str]
) -> None:
    both = authority.ca.with_name("both.pem")
    both.write_text(whole[KEY] + whole[CERTIFICATE])
    given = {"ssl.certificate.location": str(both), "ssl.key.location": str(both)}
    found = texts_of(given | {"ssl.ca.location": str(authority.ca)})
    assert found == whole
    assert isinstance(load_pem_private_key(found[KEY].encode(), None), rsa.RSAPrivateKey)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_each_curve_that_java_knows_will_do(tmp_path: Path, curve: ec.EllipticCurve) -> None:
    key, own = (str(tmp_path / name) for name in ("own.key", "own.pem"))
    private = ec.generate_private_key(curve)
    text = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(key).write_bytes(text)
    run("openssl", "req", "-x509", "-new", "-key", key, "-out", own, "-subj", "/CN=vera")
    found = texts_of({"ssl.certificate.location": own, "ssl.key.location": key})
    assert found[KEY] == text.decode()


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
