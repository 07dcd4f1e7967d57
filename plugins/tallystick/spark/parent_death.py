"""A process that must not outlive the one that started it; on Linux only, elsewhere it may.

Python's standard library alone: it travels to the cluster, and is a program of its own, too, which
becomes the one that it is told: ``parent_death.py PARENT PROGRAM ARGUMENT...``.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def dying_with_parent(argv: Sequence[str], *, path: str | None = None) -> list[str]:
    """The command by which this thread starts `argv`, so that Linux kills it when the thread ends.

    `path` is where the program is looked for, PATH unless it is given; raises FileNotFoundError. A
    `preexec_fn` would do the same, but after a true fork: gRPC, whose threads a fork ends, then
    kills one child in twenty before it has become its program.
    """
    program = shutil.which(argv[0], path=path)
    if program is None:
        raise FileNotFoundError(argv[0])
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), program, *argv[1:]]


def die_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent's thread ends.

    `parent` is its process id, taken by itself where that can be: one that died before Linux was
    told what to do then is no parent any more.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
