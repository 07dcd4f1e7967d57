"""Which paths a store takes, and which names a Spark reader sees.

1. A path is absolute, has no empty, `.` or `..` part, and no ':' (which HDFS refuses).
2. A name is hidden here only if Spark hides it: what a reader would read is never overlooked.
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


def is_hidden(name: str) -> bool:
    """True if Spark's file listing skips this name.

    A suffix hides nothing but `._COPYING_`, and `_x=1` passes for a partition
    (HadoopFSUtils.shouldFilterOutPathName).
    """
    return (
        name.startswith(".")
        or (name.startswith("_") and "=" not in name)
        or name.endswith("._COPYING_")
    )
