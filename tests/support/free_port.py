"""A port for a server that a test starts."""

from __future__ import annotations

import random

from filelock import FileLock

from sandbox.ports import FREE_FROM, FREE_UNTIL, hold

_held: list[FileLock] = []


def free_port() -> int:
    """Below those of outgoing connections, and no sandbox's as long as this process lives: nobody
    takes it before the server listens.
    """
    while (lock := hold(port := random.randrange(FREE_FROM, FREE_UNTIL), 0.0)) is None:
        pass
    _held.append(lock)
    return port
