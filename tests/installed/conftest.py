"""The wheel, and environments of it with one release of Airflow and nothing of the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox.entry.environment import registry_environment
from tests.support.busy import BUSY_SECONDS, READER_SETTING
from tests.support.repository import ROOT

UV = str(Path(sys.prefix) / "bin" / "uv")
PINS = {each.stem: each for each in sorted(Path(__file__).parent.glob("airflow-*.txt"))}


def done(argv: Sequence[str | Path], env: Mapping[str, str], cwd: Path = ROOT) -> str:
    """The program's standard output, once it has ended well; AssertionError with all it said."""
    found = subprocess.run(argv, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    assert found.returncode == 0, f"{argv}: {found.stdout[-4000:]}\n{found.stderr[-4000:]}"
    return found.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    done([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT], registry_environment())
    [built] = folder.glob("*.whl")
    return built


@dataclass(frozen=True)
class Installed:
    """An environment with one release of Airflow, and a folder for what its user has."""

    release: str
    programs: Path
    folder: Path
    connections: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        """What a user of it has set, and nothing of this checkout."""
        return {
            "HOME": str(self.folder),
            "PATH": f"{self.programs}{os.pathsep}{os.defpath}",
            "AIRFLOW_HOME": str(self.folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "vera:viewer",
            "AIRFLOW__API_AUTH__JWT_SECRET": "as long as HS512 wants it to be, " * 3,
            READER_SETTING: str(BUSY_SECONDS),
            "TALLYSTICK_FEEDS": str(self.folder / "feeds"),
            **self.connections,
        }

    def run(self, program: str, *arguments: str | Path) -> str:
        """What a program of this environment says, once it has ended well."""
        argv = [self.programs / program, *arguments]
        return done(argv, self.environment(), self.folder)


@pytest.fixture(scope="module", params=PINS)
def bare(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    """Such an environment, made anew; no service is known in it yet."""
    folder = tmp_path_factory.mktemp(request.param)
    env, place = registry_environment(), folder / "environment"
    done([UV, "venv", "--quiet", "--python", sys.executable, place], env)
    python = place / "bin" / "python"
    done(
        [UV, "pip", "install", "--quiet", "--python", python, "-r", PINS[request.param], wheel], env
    )
    return Installed(request.param.removeprefix("airflow-"), place / "bin", folder, {})
