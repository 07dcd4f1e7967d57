"""A port for a server that a test starts."""

from __future__ import annotations

import random

from sandbox.ports import FREE_FROM, FREE_UNTIL, is_free


def free_port() -> int:
    """Below those of outgoing connections: none takes it before the server listens."""
    while not is_free(port := random.randrange(FREE_FROM, FREE_UNTIL)):
        pass
    return port
