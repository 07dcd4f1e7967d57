"""A process that must not outlive the one that started it; on Linux only, elsewhere it may.

Python's standard library alone: it travels to the cluster, and runs between fork and exec.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1  # linux/prctl.h
_LIBC: Final = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent's thread ends.

    `parent` is its process id, taken before the fork where this side makes it: one that died before
    Linux was told what to do then is no parent any more.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
