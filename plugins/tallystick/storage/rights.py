"""The rights that a directory gives to what is made in it: HDFS's rename leaves them behind.

A default ACL counts for the new directory and its files, whatever umask their writer had. Without
one, the directory's own bits do, as soon as somebody has set others than it was made with; its
group does in any case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tallystick.errors import FileMissing, StorageRefused
from tallystick.storage.name_node import NameNode
from tallystick.storage.name_nodes import NameNodes

log = logging.getLogger(__name__)

_DEFAULT: Final = "default:"
_AS_MADE: Final = 0o755
"""Of a directory that WebHDFS makes where no default ACL says otherwise."""
_NOT_EXECUTABLE: Final = 0o666


def take_rights(name_nodes: NameNodes, directory: str, within: str) -> None:
    """Give the directory, and the files in it, what `within` gives; makes `within` where it lacks.

    What HDFS refuses stays as it is, and is told in the log: the rows are there all the same.
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
