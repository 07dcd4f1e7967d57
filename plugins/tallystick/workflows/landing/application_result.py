"""What a Spark application has written as its result: one line, in one file of a directory."""

from __future__ import annotations

from tallystick.errors import FileMissing
from tallystick.ports.file_store import FileStore


def result_text(store: FileStore, directory: str) -> tuple[str, str]:
    """The file's path, and its text; raises FileMissing where there is not exactly one file."""
    names = [each.name for each in store.entries(directory) if each.length_bytes]
    if len(names) != 1:
        raise FileMissing(f"{directory}/part-*")
    path = f"{directory}/{names[0]}"
    return path, store.read(path).decode()
