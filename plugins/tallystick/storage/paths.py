"""A store takes absolute paths, without an empty, `.` or `..` part, and without a ':' (which
HDFS refuses).
"""

from __future__ import annotations

from tallystick.errors import StorageRefused


def checked(path: str) -> str:
    """The path without a slash at its end; raises StorageRefused when no store could hold it."""
    parts = path.rstrip("/").split("/")
    if not path.startswith("/"):
        raise StorageRefused(path, "the path is not absolute")
    if any(part in ("", ".", "..") for part in parts[1:]):
        raise StorageRefused(path, "the path has an empty, '.' or '..' part")
    if ":" in path or "\0" in path:
        raise StorageRefused(path, "the path contains ':' or a null character")
    return "/".join(parts) or "/"


def parent_of(path: str) -> str:
    """The directory that holds a checked path; the root is its own parent."""
    return path.rpartition("/")[0] or "/"
