"""Java 17, Maven, Chromium: found, or installed where that is allowed, or asked for in words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from sandbox.entry.console import SetupFailed, run, say, tail_of
from sandbox.entry.layout import SETUP_LOG

JAVA_MAJOR = "17"
JAVA_PACKAGE = f"openjdk-{JAVA_MAJOR}-jre-headless"


def java_home() -> Path | None:
    """The home of a Java 17, JAVA_HOME first; None if there is none."""
    return next((home for home in _candidates() if _major_of(home) == JAVA_MAJOR), None)


def ensure_java() -> Path:
    """The home of a Java 17, installed by apt if it was missing and may be installed."""
    home = java_home()
    if home is None:
        _install([JAVA_PACKAGE], what=f"Java {JAVA_MAJOR}")
        home = java_home()
    if home is None:
        raise SetupFailed(
            f"Java {JAVA_MAJOR} is missing. Next: install it "
            f"(Debian, Ubuntu: apt-get install {JAVA_PACKAGE}) or set JAVA_HOME to one."
        )
    return home


def ensure_maven() -> str:
    """The path of ``mvn``, installed by apt if it was missing and may be installed."""
    found = shutil.which("mvn")
    if found is None:
        _install(["maven"], what="Maven")
        found = shutil.which("mvn")
    if found is None:
        raise SetupFailed(
            "Maven (mvn) is missing. Next: install it (Debian, Ubuntu: apt-get install maven)."
        )
    return found


def ensure_chromium() -> str:
    """The path of a Chromium, installed by apt if it was missing and may be installed."""
    found = _chromium()
    if found is None:
        _install(["chromium"], what="Chromium, for the tests in a browser")
        found = _chromium()
    if found is None:
        raise SetupFailed(
            "Chromium is missing: tests open pages in it. Next: install it "
            "(Debian: apt-get install chromium), so that `chromium` is on PATH."
        )
    return found


def _chromium() -> str | None:
    # Ubuntu's package of this name is a door to a store of its own: any of these serves.
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


def install_venv_module(version: str) -> None:
    """Install Python's venv module, which Debian packages apart."""
    _install([f"python{version}-venv"], what=f"the venv module of Python {version}")


def _candidates() -> Iterator[Path]:
    if os.environ.get("JAVA_HOME"):
        yield Path(os.environ["JAVA_HOME"])
    java = shutil.which("java")
    if java is not None:
        yield Path(java).resolve().parents[1]
    for folder in (Path("/usr/lib/jvm"), Path.home() / ".sdkman/candidates/java"):
        if folder.is_dir():
            yield from sorted(folder.iterdir())


def _major_of(home: Path) -> str | None:
    """The major version by the ``release`` file; None if it is no Java installation."""
    release = home / "release"
    if not (home / "bin" / "java").exists() or not release.exists():
        return None
    for line in release.read_text(errors="replace").splitlines():
        if line.startswith("JAVA_VERSION="):
            return line.split("=", 1)[1].strip('"').split(".")[0]
    return None


def _install(packages: list[str], *, what: str) -> None:
    apt = shutil.which("apt-get")
    by_hand = f"Next: apt-get install {' '.join(packages)} (Debian, Ubuntu), or the like of it."
    if apt is None or os.geteuid() != 0:
        raise SetupFailed(
            f"{what} is missing, and it is installed from here for root on Debian or Ubuntu only. "
            f"{by_hand}"
        )
    say(f"installing {what} by apt-get ({', '.join(packages)})")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run([apt, "update", "-q"], log=SETUP_LOG, env=env)  # a stale index may still serve
    if not run(
        [apt, "install", "-y", "-q", "--no-install-recommends", *packages], log=SETUP_LOG, env=env
    ):
        raise SetupFailed(f"apt-get could not install {what}. {by_hand}\n{tail_of(SETUP_LOG)}")
