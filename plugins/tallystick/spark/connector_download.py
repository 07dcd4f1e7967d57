"""Kafka's connector for Spark: the files that it is made of, fetched from a Maven repository.

No Maven is needed: versions and checksums are fixed here, for each Spark that is supported.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import requests

from tallystick.errors import JarNotFetched

MAVEN_CENTRAL: Final = "https://repo1.maven.org/maven2"
_ANSWER_SECONDS: Final = 30.0
_CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Jar:
    """One file of a Maven repository."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def name(self) -> str:
        """The file's name."""
        return f"{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> str:
        """Says where it lies in every repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


def _connector(
    scala: str, spark: str, token_provider: str, clients: str, pool: str, *sha256: str
) -> tuple[Jar, ...]:
    """The connector's four files: its own, the token provider, Kafka's clients, and their pool."""
    named = (
        ("org.apache.spark", f"spark-sql-kafka-0-10_{scala}", spark),
        ("org.apache.spark", f"spark-token-provider-kafka-0-10_{scala}", token_provider),
        ("org.apache.kafka", "kafka-clients", clients),
        ("org.apache.commons", "commons-pool2", pool),
    )
    return tuple(Jar(*each, digest) for each, digest in zip(named, sha256, strict=True))


CONNECTORS: Final[Mapping[str, tuple[Jar, ...]]] = {
    "3.5": _connector(
        *("2.12", "3.5.7", "3.5.7", "3.4.1", "2.11.1"),
        "184f8bd4a3cd22299c49090d88b894f81fd7546b4ee64879519a0d76a685dbb8",
        "9701914db5c6d09628b58d2d2c1ccd2c9ea28f32f83dd6cb21f98b8237531ff4",
        "9d0a9058c8ede79db6e54ae378ed16fe8d1bead2894635a4aa6aa0b7981668c6",
        "ea0505ee7515e58b1ac0e686e4d1a5d9f7d808e251a61bc371aa0595b9963f83",
    ),
    "4.0": _connector(
        *("2.13", "4.0.4", "4.0.0", "3.9.1", "2.12.0"),
        "b2f7b3a4fbf292b5bf10bd4dd6af301eded9c9985b16239b407401d66dbc8a25",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
    ),
    "4.1": _connector(
        *("2.13", "4.1.3", "4.1.1", "3.9.1", "2.12.1"),
        "cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6",
        "e510adc37b03d01d0a190d0dab472b5538e05eaa77454f7e9477156d7a6820ae",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
        "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    ),
    "4.2": _connector(
        *("2.13", "4.2.0", "4.2.0", "3.9.2", "2.13.1"),
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
        "641c7947afc8aa1189e433b7c2d305293993c8691bc1c2062d6d4f513b12518c",
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
    ),
}
"""By Spark's minor version. That of DEFAULT is the sandbox's own, byte for byte: a test compares it
with its POM and its `jars.sha256`. The others are run by `./tallystick test sparks`.
"""
DEFAULT: Final = "4.1"


def fetch_connector(
    folder: Path, repository: str = MAVEN_CENTRAL, spark: str = DEFAULT
) -> Iterator[tuple[Path, bool]]:
    """Each file's path once it is there as it should be, and whether it had to be fetched.

    A file appears whole or not at all. Raises JarNotFetched for the first that the repository does
    not give, or gives otherwise, and OSError where the folder can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for jar in CONNECTORS[spark]:
        target = folder / jar.name
        is_missing = not target.exists() or _sha256_of(target) != jar.sha256
        if is_missing:
            _fetch(jar, f"{repository.rstrip('/')}/{jar.path}", target)
        yield target, is_missing


def _fetch(jar: Jar, url: str, target: Path) -> None:
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{jar.name}-") as file:
        try:
            with requests.get(url, stream=True, timeout=_ANSWER_SECONDS) as answer:
                answer.raise_for_status()
                for chunk in answer.iter_content(_CHUNK_BYTES):
                    file.write(chunk)
        except requests.HTTPError as error:
            raise JarNotFetched(_shown(url), f"HTTP {error.response.status_code}") from None
        except (requests.RequestException, ValueError) as error:
            # Its text may hold the URL, and that a password.
            raise JarNotFetched(_shown(url), type(error).__name__) from None
        file.flush()
        found = _sha256_of(Path(file.name))
        if found != jar.sha256:
            raise JarNotFetched(_shown(url), f"its SHA-256 is {found}, not {jar.sha256}")
        Path(file.name).chmod(0o644)
        target.unlink(missing_ok=True)
        target.hardlink_to(file.name)


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _shown(url: str) -> str:
    """The URL without user and password."""
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}/{path}"
