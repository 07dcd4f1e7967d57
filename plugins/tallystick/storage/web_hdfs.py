"""The file store over WebHDFS: one request a verb, every answer in our words, no decisions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final

from hdfs import HdfsError

from tallystick.errors import (
    ConfigurationError,
    FileMissing,
    RenameOutcomeUnknown,
    StorageError,
    StorageRefused,
    StorageUnavailable,
    TargetOccupied,
)
from tallystick.ports.file_store import StoredEntry
from tallystick.storage.any_store import AnyStore, checked, parent_of
from tallystick.storage.name_node import NameNode
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.no_answer import NoAnswer
from tallystick.storage.refusals import Refusal

log = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 1 << 20
_DATE_CHARS: Final = len("Thu, 01 Jan 1970 00:00:00 GMT")
# A file that is written anew has another id; one that is appended to or truncated, another time.
_TOLD_BY: Final = (
    "fileId",
    "modificationTime",
    "childrenNum",
    "permission",
    "owner",
    "group",
    "aclBit",
    "encBit",
    "ecPolicy",
)

_DEFAULT: Final = "default:"
_AS_MADE: Final = 0o755
"""Of a directory that WebHDFS makes where no default ACL says otherwise."""
_NOT_EXECUTABLE: Final = 0o666


class WebHdfsFileStore(AnyStore):
    """One HDFS, through its NameNodes' WebHDFS; fulfils `FileStore`. Safe to use from threads."""

    def __init__(self, name_nodes: NameNodes, file_system: str) -> None:
        """`file_system`: what Spark calls it, as hdfs://host:port."""
        if "://" not in file_system:
            raise ConfigurationError("fs", file_system, "a URI such as hdfs://namenode:8020")
        self._file_system = file_system.rstrip("/")
        self._name_nodes = name_nodes

    def close(self) -> None:
        """Close the connections; a later verb opens new ones."""
        self._name_nodes.close()

    def uri(self, path: str) -> str:
        """The path with scheme and authority, not escaped: Hadoop takes a URI's path literally."""
        return self._file_system + checked(path)

    def clock_ms(self) -> int | None:
        """The time of the NameNode's answers, to the second; a gateway's where one answers."""
        try:
            told = self._name_nodes.ask("/", lambda node: node.date())
            # A NameNode writes the header twice.
            return int(parsedate_to_datetime(told[:_DATE_CHARS]).timestamp()) * 1000
        except (StorageRefused, ValueError):
            return None

    def write(self, path: str, content: bytes) -> None:
        """Write a whole small file; after an error it may be missing, whole, or cut short."""
        path = checked(path)
        self._name_nodes.ask(path, lambda node: node.hdfs.write(path, content, overwrite=True))

    def read(self, path: str) -> bytes:
        """A whole small file."""
        return self._content(checked(path))

    def read_range(self, path: str, position: int, length: int) -> bytes:
        """Exactly these bytes; StorageUnavailable when the answer is short."""
        path = checked(path)
        content = self._content(path, offset=position, length=length)
        if len(content) != length:
            raise StorageUnavailable(
                path, f"{len(content)} bytes came at {position} where {length} were asked for"
            )
        return content

    def _content(self, path: str, **bounds: int) -> bytes:
        def read(node: NameNode) -> bytes:
            with node.hdfs.read(path, chunk_size=_CHUNK_BYTES, **bounds) as chunks:
                # Inside: a body that breaks off is an answer that was lost.
                return b"".join(chunks)

        return self._name_nodes.ask(path, read)

    def status(self, path: str) -> StoredEntry | None:
        """The entry at the path; None if there is none."""
        path = checked(path)
        try:
            found = self._name_nodes.ask(path, lambda node: node.hdfs.status(path))
        except FileMissing:
            return None
        return _entry(path.rpartition("/")[2], found)

    def entries(self, path: str) -> Sequence[StoredEntry]:
        """The entries of a directory, sorted by name; the NameNode pages through them itself."""
        path = checked(path)
        try:
            listed = self._name_nodes.ask(path, lambda node: node.hdfs.list(path, status=True))
        except HdfsError as error:
            raise StorageRefused(path, "it is a file, not a directory") from error
        return sorted((_entry(*each) for each in listed), key=lambda entry: entry.name)

    def checksum(self, path: str) -> str:
        """HDFS's own checksum, which depends on block size; ManifestMismatch for an open file."""
        path = checked(path)
        found = self._name_nodes.ask(path, lambda node: node.hdfs.checksum(path))
        return f"{found['algorithm']}:{found['bytes']}"

    def rename_exclusive(self, source: str, target: str) -> None:
        """One NameNode transaction: a plain rename nests, and says true."""
        source, target = checked(source), checked(target)
        parent = parent_of(target)
        self._name_nodes.ask(parent, lambda node: node.hdfs.makedirs(parent))
        try:
            plainly = self._name_nodes.answer(
                source, lambda node: node.rename_exclusive(source, target), once=True
            )
        except NoAnswer as error:
            unknown = RenameOutcomeUnknown(source, error.reason, target)
            raise self._name_nodes.named(unknown) from error
        except Refusal as refusal:
            found = self._rename_error(source, target, refusal)
            raise self._name_nodes.named(found) from None
        if plainly is None:
            return
        reason = "the server does not know renameoptions=NONE: use a NameNode's WebHDFS, not HttpFS"
        if plainly:
            raise RenameOutcomeUnknown(source, reason, target)
        raise StorageRefused(source, reason)

    def take_rights(self, directory: str, within: str) -> None:
        """Gives the directory what `within` gives to new entries, which a rename leaves behind."""
        _take_rights(self._name_nodes, checked(directory), checked(within))

    def _rename_error(self, source: str, target: str, refusal: Refusal) -> StorageError:
        """The refusal of a rename. Nothing was done, so what HDFS's words leave open is looked up.

        A missing source and a missing parent have one name; a file in a directory's way has none.
        """
        if refusal.exception == "FileAlreadyExistsException":
            return TargetOccupied(source, target)
        if refusal.exception == "IOException" and self.status(target) is not None:
            return TargetOccupied(source, target)
        error = refusal.error(source)
        if isinstance(error, FileMissing) and self.status(source) is not None:
            return StorageUnavailable(target, refusal.words)
        return error

    def delete(self, path: str) -> bool:
        """Delete the path and all below it; False if it wasn't there when the last try came."""
        path = checked(path)
        return self._name_nodes.ask(path, lambda node: node.hdfs.delete(path, recursive=True))

    def delete_empty(self, directory: str) -> bool:
        """Delete the directory; False if it holds something, or isn't there at the last try.

        A try whose answer is lost may have deleted it: the next one says False then.
        """
        path = checked(directory)
        found = self.status(path)
        if found is not None and not found.is_directory:
            raise StorageRefused(path, "it is a file, not a directory")
        try:
            return self._name_nodes.answer(path, lambda node: node.hdfs.delete(path), once=False)
        except Refusal as refusal:
            if refusal.exception == "PathIsNotEmptyDirectoryException":
                return False
            raise self._name_nodes.named(refusal.error(path)) from None


def _entry(name: str, status: Mapping[str, Any]) -> StoredEntry:
    is_directory = status["type"] == "DIRECTORY"
    length = 0 if is_directory else int(status["length"])
    # Without an id, which not every server tells, another file may be in its place.
    told = (str(status.get(each)) for each in _TOLD_BY)
    version = " ".join(told) if status.get("fileId") else ""
    changed_ms, coding = int(status["modificationTime"]), status.get("ecPolicy") or ""
    return StoredEntry(name, is_directory, length, changed_ms, version, coding)


def _take_rights(name_nodes: NameNodes, directory: str, within: str) -> None:
    """Give the directory, and the files in it, what `within` gives; makes `within` where it lacks.

    HDFS's rename leaves them behind. A default ACL counts for the new directory and its files,
    whatever umask their writer had. Without one, the directory's own bits do, as soon as somebody
    has set others than it was made with; its group does in any case. What HDFS refuses stays as it
    is, and is told in the log: the rows are there all the same.
    """

    def status(path: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = name_nodes.ask(path, lambda node: node.hdfs.status(path))
        return found

    try:
        giver = status(within)
    except FileMissing:
        name_nodes.ask(within, lambda node: node.hdfs.makedirs(within))
        giver = status(within)
    taker = status(directory)
    acl = _default_acl(name_nodes, within) if giver.get("aclBit") else []
    if not acl and _bits(giver) == _AS_MADE and giver["group"] == taker["group"]:
        return
    listed = name_nodes.ask(directory, lambda node: node.hdfs.list(directory, status=True))
    entries = [(directory, taker), *((f"{directory}/{name}", each) for name, each in listed)]
    refused: list[StorageRefused] = []
    for path, entry in entries:
        for change in _changes(path, entry, giver, acl):
            try:
                name_nodes.ask(path, change)
            except StorageRefused as error:
                refused.append(error)
    if refused:
        log.warning("%s does not get all rights that %s gives: %s", directory, within, refused[0])


def _default_acl(name_nodes: NameNodes, path: str) -> list[str]:
    """Returns what it gives, as entries of an ACL."""
    found = name_nodes.ask(path, lambda node: node.hdfs.acl_status(path))["entries"]
    return [each.removeprefix(_DEFAULT) for each in found if each.startswith(_DEFAULT)]


def _changes(
    path: str, entry: Mapping[str, Any], giver: Mapping[str, Any], acl: list[str]
) -> Iterator[Callable[[NameNode], object]]:
    """Says what to do about one entry; its group first, which only its owner may change."""
    is_directory = entry["type"] == "DIRECTORY"
    if entry["group"] != giver["group"]:
        yield lambda node: node.hdfs.set_owner(path, group=giver["group"])
    if acl:
        # As HDFS does it where something is made: a file can't be run, a directory hands on.
        wanted = acl if is_directory else [f"{each[:-1]}-" for each in acl]
        handed_on = [f"{_DEFAULT}{each}" for each in acl] if is_directory else []
        yield lambda node: node.hdfs.set_acl(path, ",".join([*wanted, *handed_on]))
        return
    bits = _bits(giver)
    wanted_bits = bits if is_directory else bits & _NOT_EXECUTABLE
    if bits != _AS_MADE and _bits(entry) != wanted_bits:
        yield lambda node: node.hdfs.set_permission(path, f"{wanted_bits:o}")


def _bits(status: Mapping[str, Any]) -> int:
    """Says who may do what, without the sticky bit."""
    return int(status["permission"], 8) & 0o777
