"""What the sandbox says when it cannot go on."""

from __future__ import annotations

from pathlib import Path

TAIL_LINES = 15


class SandboxError(Exception):
    """Something the sandbox could not do; the text says what, where and what to do next."""

    exit_code = 3


class WrongUse(SandboxError):
    """The sandbox was asked for something that makes no sense now."""

    exit_code = 2


class ServiceFailed(SandboxError):
    """A service died or did not become ready; the text ends with the last lines of its log."""

    def __init__(self, service: str, what: str, log: Path) -> None:
        super().__init__(service, what, log)

    def __str__(self) -> str:
        service, what, log = self.args
        return f"{service} {what}. Its log {log} ends with:\n{tail_of(log)}"


def tail_of(log: Path) -> str:
    """The last lines of a log file, indented."""
    if not log.exists():
        return "    (no log)"
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join(f"    {line}" for line in lines) or "    (empty)"
