"""Kafka's connector for Spark: the files that it is made of, fetched from a Maven repository.

No Maven is needed: versions and checksums are fixed here, for the Spark that the wheel's range
names.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
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
        """Where it lies in every repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.name}"


CONNECTOR: Final = (
    Jar(
        "org.apache.spark",
        "spark-sql-kafka-0-10_2.13",
        "4.0.4",
        "b2f7b3a4fbf292b5bf10bd4dd6af301eded9c9985b16239b407401d66dbc8a25",
    ),
    Jar(
        "org.apache.spark",
        "spark-token-provider-kafka-0-10_2.13",
        "4.0.0",
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    ),
    Jar(
        "org.apache.kafka",
        "kafka-clients",
        "3.9.1",
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    ),
    Jar(
        "org.apache.commons",
        "commons-pool2",
        "2.12.0",
        "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b",
    ),
)
"""The sandbox's own, byte for byte: a test compares them with its POM and its `jars.sha256`."""


def fetch_connector(folder: Path, repository: str = MAVEN_CENTRAL) -> Iterator[tuple[Path, bool]]:
    """Each file's path once it is there as it should be, and whether it had to be fetched.

    A file appears whole or not at all. Raises JarNotFetched for the first that the repository does
    not give, or gives otherwise, and OSError where the folder can't be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for jar in CONNECTOR:
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
