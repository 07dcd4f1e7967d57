"""The file store over WebHDFS: one request a verb, every answer in our words, no decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import requests

from tallystick.errors import (
    ConfigurationError,
    FileMissing,
    RenameOutcomeUnknown,
    StorageRefused,
    StorageUnavailable,
    TargetOccupied,
)
from tallystick.ports.file_store import StoredEntry
from tallystick.storage.name_nodes import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    RETRY_SECONDS,
    NameNodes,
    NoAnswer,
)
from tallystick.storage.paths import checked, parent_of
from tallystick.storage.probe import prove_writable
from tallystick.storage.refusals import Refusal
from tallystick.storage.row_answers import RowAnswers

_NOT_WEBHDFS: Final = "the answer is not WebHDFS's: is the URL right?"


class WebHdfsFileStore(RowAnswers):
    """One HDFS, through its NameNodes' WebHDFS; fulfils `FileStore`. Safe to use from threads."""

    def __init__(
        self,
        urls: Sequence[str],
        file_system: str,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        kerberos: bool = False,
        proxy_user: str | None = None,
        verify: bool | str = True,
        connect_seconds: float = CONNECT_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """`urls`: one per NameNode. `file_system`: what Spark calls it, as hdfs://host:port.

        A token beats Kerberos, and both beat the plain user name.
        """
        if "://" not in file_system:
            raise ConfigurationError("fs", file_system, "a URI such as hdfs://namenode:8020")
        self._file_system = file_system.rstrip("/")
        self._name_nodes = NameNodes(
            urls,
            user=user,
            password=password,
            token=token,
            kerberos=kerberos,
            proxy_user=proxy_user,
            verify=verify,
            connect_seconds=connect_seconds,
            answer_seconds=answer_seconds,
            retry_seconds=retry_seconds,
        )

    def close(self) -> None:
        """Close the connections; a later verb opens new ones."""
        self._name_nodes.close()

    def uri(self, path: str) -> str:
        """The path with scheme and authority, not escaped: Hadoop takes a URI's path literally."""
        return self._file_system + checked(path)

    def require_writable(self, root: str) -> None:
        """Return if a small landing went well under the root."""
        prove_writable(self, checked(root).rstrip("/"), f"_probe-{uuid4().hex}")

    def write(self, path: str, content: bytes) -> None:
        """Write a whole small file; after an error it may be missing, whole, or cut short."""
        path = checked(path)

        def create(client: Any) -> requests.Response:
            redirect: requests.Response = client._create(path, overwrite=True, strict=False)
            if redirect.status_code >= 400:
                return redirect
            answer: requests.Response = client._request(
                "PUT", redirect.headers["location"], data=content
            )
            return answer

        self._name_nodes.ask(path, create)

    def read(self, path: str) -> bytes:
        """A whole small file."""
        path = checked(path)
        return self._open(path)

    def read_range(self, path: str, position: int, length: int) -> bytes:
        """Exactly these bytes; StorageUnavailable when the answer is short."""
        path = checked(path)
        content = self._open(path, offset=position, length=length)
        if len(content) != length:
            raise StorageUnavailable(
                path, f"{len(content)} bytes came at {position} where {length} were asked for"
            )
        return content

    def _open(self, path: str, **bounds: int) -> bytes:
        def read(client: Any) -> requests.Response:
            with client._open(path, strict=False, **bounds) as response:
                _ = response.content  # inside: a body that breaks off is an answer that was lost
                found: requests.Response = response
                return found

        return self._name_nodes.ask(path, read).content

    def status(self, path: str) -> StoredEntry | None:
        """The entry at the path; None if there is none."""
        path = checked(path)
        try:
            answer = self._name_nodes.ask(
                path, lambda client: client._get_file_status(path, strict=False)
            )
        except FileMissing:
            return None
        return _entry(path.rpartition("/")[2], _field(path, answer, "FileStatus"))

    def entries(self, path: str) -> Sequence[StoredEntry]:
        """The entries of a directory, sorted by name; the NameNode pages through them itself."""
        path = checked(path)
        answer = self._name_nodes.ask(path, lambda client: client._list_status(path, strict=False))
        listed = _field(path, answer, "FileStatuses")["FileStatus"]
        if len(listed) == 1 and not listed[0]["pathSuffix"]:
            raise StorageRefused(path, "it is a file, not a directory")
        return sorted(
            (_entry(each["pathSuffix"], each) for each in listed), key=lambda entry: entry.name
        )

    def checksum(self, path: str) -> str:
        """HDFS's own checksum, which depends on block size; ManifestMismatch for an open file."""
        path = checked(path)
        answer = self._name_nodes.ask(
            path, lambda client: client._get_file_checksum(path, strict=False)
        )
        found = _field(path, answer, "FileChecksum")
        return f"{found['algorithm']}:{found['bytes']}"

    def rename_exclusive(self, source: str, target: str) -> None:
        """One NameNode transaction (`renameoptions=NONE`): plain RENAME nests, and says true."""
        source, target = checked(source), checked(target)
        parent = parent_of(target)
        self._name_nodes.ask(parent, lambda client: client._mkdirs(parent, strict=False))
        try:
            answer = self._name_nodes.answer(
                source,
                lambda client: client._rename(
                    source, destination=target, renameoptions="NONE", strict=False
                ),
                once=True,
            )
        except NoAnswer as error:
            raise RenameOutcomeUnknown(source, target, error.reason) from error
        if answer.status_code >= 400:
            self._refuse_rename(source, target, Refusal.of(answer))
        if answer.content:
            self._refuse_gateway(source, target, answer)

    def _refuse_rename(self, source: str, target: str, refusal: Refusal) -> None:
        """Always raises. Nothing was done, so what HDFS's words leave open can be looked up.

        A missing source and a missing parent have one name; a file in a directory's way has none.
        """
        if refusal.exception == "FileAlreadyExistsException":
            raise TargetOccupied(source, target)
        if refusal.exception == "IOException" and self.status(target) is not None:
            raise TargetOccupied(source, target)
        error = refusal.error(source)
        if isinstance(error, FileMissing) and self.status(source) is not None:
            raise StorageUnavailable(target, refusal.words)
        raise error

    def _refuse_gateway(self, source: str, target: str, answer: requests.Response) -> None:
        """Always raises: an answer with content comes from a server that ignored the option."""
        reason = "the server does not know renameoptions=NONE: use a NameNode's WebHDFS, not HttpFS"
        if _field(source, answer, "boolean"):
            raise RenameOutcomeUnknown(source, target, reason)
        raise StorageRefused(source, reason)

    def delete(self, path: str) -> bool:
        """Delete the path and all below it; False if it wasn't there when the last try came."""
        path = checked(path)
        answer = self._name_nodes.ask(
            path, lambda client: client._delete(path, recursive=True, strict=False)
        )
        return bool(_field(path, answer, "boolean"))

    def delete_empty(self, directory: str) -> bool:
        """Delete the directory; False if it holds something, or isn't there."""
        path = checked(directory)
        found = self.status(path)
        if found is not None and not found.is_directory:
            raise StorageRefused(path, "it is a file, not a directory")
        answer = self._name_nodes.answer(
            path, lambda client: client._delete(path, recursive=False, strict=False), once=False
        )
        if answer.status_code >= 400:
            refusal = Refusal.of(answer)
            if refusal.exception == "PathIsNotEmptyDirectoryException":
                return False
            raise refusal.error(path)
        return bool(_field(path, answer, "boolean"))


def _entry(name: str, status: Mapping[str, Any]) -> StoredEntry:
    is_directory = status["type"] == "DIRECTORY"
    length = 0 if is_directory else int(status["length"])
    return StoredEntry(name, is_directory, length, int(status["modificationTime"]))


def _field(path: str, response: requests.Response, name: str) -> Any:
    """One field of a JSON answer; StorageRefused where the answer is something else."""
    try:
        return response.json()[name]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageRefused(path, _NOT_WEBHDFS) from error
