"""What the wheel holds: the package with all its files, and nothing of the sandbox or the tests."""

from __future__ import annotations

import zipfile
from email import message_from_string
from pathlib import Path

from tests.support.repository import tracked_files


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def test_the_wheel_holds_each_file_of_the_package_and_the_plugin_and_nothing_else(
    wheel: Path,
) -> None:
    inside = {
        path.relative_to("plugins").as_posix()
        for path in tracked_files()
        if path.parts[0] == "plugins" and path.name != ".airflowignore"
    }
    jobs = {path.name for path in tracked_files() if path.parts[0] == "spark_jobs"}

    assert names_in(wheel) == inside | {f"tallystick/spark/jobs/{each}" for each in jobs}
    assert {Path(name).suffix for name in inside} == {
        ".py",
        ".sql",
        ".html",
        ".css",
        ".js",
        ".typed",
    }


def test_the_wheel_names_its_versions_the_plugin_and_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        texts = {Path(name).name: opened.read(name).decode() for name in opened.namelist()
                 if ".dist-info/" in name}  # fmt: skip
    metadata = message_from_string(texts["METADATA"])

    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert "apache-airflow<3.4,>=3.1.8" in metadata.get_all("Requires-Dist", [])
    assert texts["entry_points.txt"].split() == [
        "[console_scripts]", "tallystick", "=", "tallystick.__main__:main",
        "[airflow.plugins]", "tallystick", "=", "tallystick_plugin:TallystickPlugin",
    ]  # fmt: skip
