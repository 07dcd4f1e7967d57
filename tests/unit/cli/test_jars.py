"""`jars`: the connector, fetched from a repository whole and as it should be, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import cast

import pytest

from sandbox.entry.jars import versions_of
from tallystick.spark.connector_download import CONNECTORS, DEFAULT, Jar
from tests.support.command_line import CommandLine

CONTENT = {"one": b"first" * 1000, "two": b"second"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What the repository serves: two small jars."""
    jars = tuple(
        Jar("org.example.it", name, "1.0", hashlib.sha256(content).hexdigest())
        for name, content in CONTENT.items()
    )
    connectors = cast("dict[str, tuple[Jar, ...]]", CONNECTORS)
    monkeypatch.setitem(connectors, DEFAULT, jars)
    monkeypatch.setitem(connectors, "4.2", jars[:1])
    for jar in jars:
        file = tmp_path / "repository" / jar.path
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT[jar.artifact])
    return tmp_path / "repository"


@pytest.fixture
def repository(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=root)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_all_jars_are_fetched_once_and_the_connection_is_told(
    cli: CommandLine, repository: str, tmp_path: Path
) -> None:
    place = tmp_path / "new" / "jars"

    told = cli("jars", str(place), "--repository", f"{repository}/")

    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines() == [
        "fetched: one-1.0.jar",
        "fetched: two-1.0.jar",
        f'In the Spark connection\'s extra: "jars": "{place}/*"',
    ]
    assert {each.name: each.read_bytes() for each in place.iterdir()} == {
        "one-1.0.jar": CONTENT["one"],
        "two-1.0.jar": CONTENT["two"],
    }
    assert {each.stat().st_mode & 0o777 for each in place.iterdir()} == {0o644}
    # Nobody is asked again.
    assert cli("jars", str(place), "--repository", "http://127.0.0.1:1", "--json").json == {
        "format": "tallystick-jars-1",
        "folder": str(place),
        "jars": [
            {"file": "one-1.0.jar", "is_fetched": False},
            {"file": "two-1.0.jar", "is_fetched": False},
        ],
    }


def test_a_file_that_is_another_one_is_refused_and_one_that_was_damaged_is_fetched_anew(
    cli: CommandLine, repository: str, root: Path, tmp_path: Path
) -> None:
    place = tmp_path / "jars"
    place.mkdir()
    (place / "one-1.0.jar").write_bytes(b"damaged")
    [served] = root.rglob("two-1.0.jar")
    served.write_bytes(b"another")

    told = cli("jars", str(place), "--repository", repository)

    assert told.code == 3
    assert "two-1.0.jar could not be fetched: its SHA-256 is" in told.err
    assert [each.name for each in place.iterdir()] == ["one-1.0.jar"]
    assert (place / "one-1.0.jar").read_bytes() == CONTENT["one"]


def test_a_repository_that_has_it_not_is_told_without_the_password(
    cli: CommandLine, repository: str, root: Path, tmp_path: Path
) -> None:
    [served] = root.rglob("one-1.0.jar")
    served.unlink()
    secret = repository.replace("//", "//me:s3cret@")

    told = cli("jars", str(tmp_path / "jars"), "--repository", secret)

    assert told.code == 3
    assert "one-1.0.jar could not be fetched: HTTP 404." in told.err
    assert "s3cret" not in told.err + told.out


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("ftp://example.com", 2, "the scheme of --repository is 'ftp'; accepted: https, http"),
        ("http://127.0.0.1:1", 3, "could not be fetched: ConnectionError"),
        ("http://[", 3, "could not be fetched: "),
    ],
)
def test_a_url_that_leads_nowhere_is_told(
    cli: CommandLine, root: Path, tmp_path: Path, url: str, code: int, words: str
) -> None:
    told = cli("jars", str(tmp_path / "jars"), "--repository", url)

    assert told.code == code
    assert words in told.err


def test_a_folder_that_is_a_file_is_wrong_use(cli: CommandLine, root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    told = cli("jars", str(tmp_path / "file"))

    assert told.code == 2
    assert "DIR is" in told.err


def test_the_jars_are_the_sandboxs_by_version() -> None:
    assert {
        f"{each.group}:{each.artifact}": each.version for each in CONNECTORS[DEFAULT]
    } == versions_of("spark-kafka")


def test_another_spark_has_jars_of_its_own_and_an_unknown_one_is_told(
    cli: CommandLine, repository: str, tmp_path: Path
) -> None:
    options = ("--repository", repository, "--spark")

    assert cli("jars", str(tmp_path / "jars"), *options, "4.2").code == 0
    assert [each.name for each in (tmp_path / "jars").iterdir()] == ["one-1.0.jar"]
    told = cli("jars", str(tmp_path / "none"), *options, "4.9")
    assert (told.code, (tmp_path / "none").exists()) == (2, False)
    assert "--spark is '4.9'; accepted: 3.5, 4.0, 4.1, 4.2" in told.err
