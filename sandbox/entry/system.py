"""Programs of the system: found, or installed where that is allowed, or asked for in words."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from sandbox.entry.console import SetupFailed, run, say, tail_of
from sandbox.entry.layout import SETUP_LOG

JAVA_MAJOR = "17"
POSTGRES_MAJOR = 15
POSTGRES_HOME = Path("/usr/lib/postgresql")
POSTGRES_SETTINGS = Path("/etc/postgresql-common/createcluster.conf")
_KERBEROS_PROGRAMS = ("krb5kdc", "kadmin.local", "kinit", "krb5-config", "gcc")
KERBEROS_PACKAGES = (
    "krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-dev", "gcc", "python3-dev",
)  # fmt: skip
ENGINE_HELPERS = ("runc", "iptables", "debootstrap")
JAVA_PACKAGE = f"openjdk-{JAVA_MAJOR}-jre-headless"
_Found = TypeVar("_Found")


def java_home() -> Path | None:
    """The home of a Java 17, JAVA_HOME first; None if there is none."""
    return next((home for home in _candidates() if _major_of(home) == JAVA_MAJOR), None)


def ensure_java() -> Path:
    """The home of a Java 17, installed by apt if it was missing and may be installed."""
    return _ensured(
        java_home, [JAVA_PACKAGE], what=f"Java {JAVA_MAJOR}", otherwise=" or set JAVA_HOME to one"
    )


def ensure_maven() -> str:
    """The path of ``mvn``, installed by apt if it was missing and may be installed."""
    return _ensured(lambda: shutil.which("mvn"), ["maven"], what="Maven")


def ensure_chromium() -> str:
    """The path of a Chromium, installed by apt if it was missing and may be installed."""
    return _ensured(
        _chromium,
        ["chromium"],
        what="Chromium, for the tests in a browser",
        otherwise=", so that `chromium` is on PATH",
    )


def ensure_postgres() -> Path:
    """The directory of a PostgreSQL's programs with TLS, installed by apt if it was missing.

    No server is made or started by the installation.
    """
    if _postgres() is None and os.geteuid() == 0 and not POSTGRES_SETTINGS.exists():
        POSTGRES_SETTINGS.parent.mkdir(exist_ok=True)
        POSTGRES_SETTINGS.write_text("create_main_cluster = false\n")
    return _ensured(_postgres, ["postgresql"], what=f"PostgreSQL {POSTGRES_MAJOR} or newer")


def ensure_pooler() -> str:
    """The path of ``pgbouncer``, installed by apt if it was missing and may be installed."""
    what = "PgBouncer, for the tests of the ledger"
    return _ensured(lambda: shutil.which("pgbouncer"), ["pgbouncer"], what=what)


def ensure_kerberos() -> None:
    """Return with Kerberos' servers, clients and headers, installed by apt where that may be."""
    _ensured(_kerberos, KERBEROS_PACKAGES, what=f"Kerberos ({', '.join(_KERBEROS_PROGRAMS)})")


def ensure_engine_helpers() -> None:
    """Return with what an unpacked container engine takes from the machine, installed by apt."""
    _ensured(
        lambda: all(map(_in_system, ENGINE_HELPERS)) or None,
        ENGINE_HELPERS,
        what=f"what a container engine needs ({', '.join(ENGINE_HELPERS)})",
    )


def _in_system(program: str) -> str | None:
    """Where a program lies that may be root's alone; None if it is missing."""
    return shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))


def _ensured(
    find: Callable[[], _Found | None], packages: Sequence[str], *, what: str, otherwise: str = ""
) -> _Found:
    """What is found, once the packages are installed if need be; raises SetupFailed."""
    found = find()
    if found is None:
        _install(packages, what=what)
        found = find()
    if found is None:
        by_apt = f"apt-get install {' '.join(packages)}"
        raise SetupFailed(
            f"{what} is missing. Next: install it (Debian, Ubuntu: {by_apt}){otherwise}."
        )
    return found


def _kerberos() -> str | None:
    """Where its KDC lies; None while one of the programs is missing."""
    found = [_in_system(name) for name in _KERBEROS_PROGRAMS]
    return found[0] if all(found) else None


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


def _postgres() -> Path | None:
    """The newest that the distribution has installed, unless it is too old."""
    homes = [each for each in POSTGRES_HOME.glob("*/bin/postgres") if each.parts[-3].isdecimal()]
    newest = max(homes, key=lambda each: int(each.parts[-3]), default=None)
    if newest is None or int(newest.parts[-3]) < POSTGRES_MAJOR:
        return None
    return newest.parent


def _install(packages: Sequence[str], *, what: str) -> None:
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
    argv = [apt, "install", "-y", "-q", "--no-install-recommends"]
    argv += ["-o", "Dpkg::Options::=--force-confold"]  # a setting that is there stays
    argv += ["-o", "DPkg::Lock::Timeout=600"]  # somebody else may be installing
    if not run([*argv, *packages], log=SETUP_LOG, env=env):
        raise SetupFailed(f"apt-get could not install {what}. {by_hand}\n{tail_of(SETUP_LOG)}")
