"""The private working directory of one spark-submit, with the code and the secrets in it.

A killed process can't clear up behind itself, so the next one does. Whoever uses a directory holds
a lock on a file in it; the kernel lets go of the lock when that process dies, whatever way.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tallystick.spark.cluster_zip import ARCHIVE_NAME, write_cluster_zip
from tallystick.spark.kafka_access import SECRETS_FILE, secrets_text

_PREFIX: Final = "tallystick-submit-"
_OWNER: Final = "owner.lock"
_NOT_YET_OWNER: Final = "owner.new"


@contextmanager
def work_directory(secrets: Mapping[str, str]) -> Iterator[Path]:
    """The directory, for this user only; gone afterwards.

    A process that is killed leaves it behind, in the system's directory for temporary files, until
    this user's next one is made on this machine.
    """
    _sweep_abandoned(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_PREFIX) as name, _held(Path(name)) as directory:
        write_cluster_zip(directory / ARCHIVE_NAME)
        if secrets:
            file = directory / SECRETS_FILE
            file.touch(mode=0o600)
            file.write_text(secrets_text(secrets), encoding="ascii")
        yield directory


@contextmanager
def _held(directory: Path) -> Iterator[Path]:
    """The directory with this process's lock in it, which is there only once it is locked.

    Where files can't be locked there is none, and nobody ever clears up.
    """
    with (directory / _NOT_YET_OWNER).open("w") as file:
        if _is_locked_now(file.fileno()):
            (directory / _NOT_YET_OWNER).rename(directory / _OWNER)
        yield directory


def _sweep_abandoned(folder: Path) -> None:
    """Delete this user's directories whose process has died; others stay, and so does doubt."""
    for directory in folder.glob(f"{_PREFIX}*"):
        if not _is_mine(directory):
            continue
        try:
            with (directory / _OWNER).open("r+") as file:
                if _is_locked_now(file.fileno()):
                    shutil.rmtree(directory, ignore_errors=True)
        except OSError:  # no lock yet, or another process is clearing up
            continue


def _is_mine(directory: Path) -> bool:
    try:
        found = directory.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _is_locked_now(descriptor: int) -> bool:
    """True if the lock was free and is this process's now."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
