"""The archive of Spark's classes: whole or absent, and named where it is there alone."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sandbox.entry import class_archive
from sandbox.entry.class_archive import OPTIONS, ensure_class_archive, spark_variables

MADE_OF = "pyspark==4.0.4"


@pytest.fixture(autouse=True)
def fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where a set-up puts what it fetches; its environment has a spark-submit that does nothing."""
    venv, fetched = tmp_path / "venv", tmp_path / "a folder"
    for folder in (venv / "bin", fetched):
        folder.mkdir(parents=True)
    (venv / "stamp").write_text(MADE_OF)
    for name, value in {"VENV": venv, "STAMP": venv / "stamp", "FETCHED": fetched}.items():
        monkeypatch.setattr(class_archive, name, value)
    monkeypatch.setattr(class_archive, "SETUP_LOG", tmp_path / "setup.log")
    return fetched


def spark_submit(script: str) -> None:
    program = class_archive.VENV / "bin" / "spark-submit"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


# What a JVM does at its exit; the quotes are Spark's to take off, as a shell does.
WRITES = """eval "set -- $SPARK_SUBMIT_OPTS"; echo classes > "${1#*=}" """


def archives(folder: Path) -> list[str]:
    return [each.name for each in folder.glob("*.jsa")]


def test_an_archive_is_named_once_it_is_there_and_given_options_stay() -> None:
    given = {OPTIONS: "-Xss4m '-Dplace=a folder'"}
    before = shlex.split(spark_variables(given)[OPTIONS])
    assert before[-2:] == ["-Xss4m", "-Dplace=a folder"]
    assert not any(each.startswith("-XX:SharedArchiveFile") for each in before)
    spark_submit(WRITES)
    ensure_class_archive()
    options = spark_variables(given)[OPTIONS]
    assert f"-XX:SharedArchiveFile={class_archive.class_archive()}" in shlex.split(options)
    assert set(before) < set(shlex.split(options))
    assert spark_variables({OPTIONS: options})[OPTIONS] == options


def test_given_options_that_share_a_word_all_stay() -> None:
    given = "--add-opens java.base/java.nio=ALL-UNNAMED --add-opens java.base/java.util=ALL-UNNAMED"
    options = spark_variables({OPTIONS: given})[OPTIONS]
    assert options.endswith(given)
    assert spark_variables({OPTIONS: options})[OPTIONS] == options


def test_an_archive_of_other_packages_is_not_named_and_goes_with_the_next(fetched: Path) -> None:
    spark_submit(WRITES)
    ensure_class_archive()
    [old] = archives(fetched)
    class_archive.STAMP.write_text("pyspark==4.0.5")
    assert "SharedArchiveFile" not in spark_variables({})[OPTIONS]
    ensure_class_archive()
    [new] = archives(fetched)
    assert new != old


def test_what_a_run_that_fails_has_written_is_no_archive(
    fetched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_submit(f"{WRITES}; exit 1")
    ensure_class_archive()
    assert "no archive could be made" in capsys.readouterr().err
    assert archives(fetched) == []
    assert "SharedArchiveFile" not in spark_variables({})[OPTIONS]
    assert [each.name for each in fetched.iterdir()] == ["class-archive.lock"]


def test_the_run_is_done_by_the_python_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the first one on PATH: Spark's scripts can't run one whose path has a blank."""
    monkeypatch.setenv("PYSPARK_PYTHON", "another")
    (class_archive.VENV / "bin" / "python3").symlink_to("/bin/true")
    found = f'test "$(command -v python3)" = "{class_archive.VENV}/bin/python3"'
    spark_submit(f'{found} || exit 1; test -z "$PYSPARK_PYTHON" || exit 1; {WRITES}')
    ensure_class_archive()
    assert "SharedArchiveFile" in spark_variables({})[OPTIONS]


def test_an_archive_is_made_once() -> None:
    spark_submit(WRITES)
    ensure_class_archive()
    spark_submit("exit 1")
    archive = class_archive.class_archive()
    ensure_class_archive()
    assert archive is not None
    assert archive.read_text() == "classes\n"
