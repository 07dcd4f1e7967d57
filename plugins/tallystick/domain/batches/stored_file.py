"""Files and directories as storage shows them, beside what was committed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as storage shows it now."""

    length_bytes: int
    checksum: str | None
    """None when nobody could tell."""
    trouble: str | None = None
    """Why nobody could tell, or why the checksum says nothing of the bytes."""

    @classmethod
    def beside(cls, length_bytes: int, checksum: str, committed: str) -> StoredFile:
        """The file of this checksum; with trouble where the committed one says nothing of it.

        HDFS makes its checksums over blocks and chunks, and says in their names which: of the same
        bytes in other ones it has another checksum.
        """
        kind, _, _ = checksum.partition(":")
        if committed.startswith(f"{kind}:"):
            return cls(length_bytes, checksum)
        was, _, _ = committed.partition(":")
        trouble = f"it is stored in another way ({kind}) than it was committed ({was})"
        return cls(length_bytes, checksum, trouble)

    @property
    def is_stored_anew(self) -> bool:
        """True where its checksum can't be compared, and only its bytes can."""
        return self.trouble is not None and self.checksum is not None

    def is_as_committed(self, file: LandedFile) -> bool:
        """True when length and checksum were asked, and are those of the commit."""
        now = (self.length_bytes, self.checksum, self.trouble)
        return now == (file.length_bytes, file.checksum, None)

    def as_evidence(self) -> Mapping[str, object]:
        """Which bytes these are: a finding about them is of these bytes, and of no others."""
        return {"length_bytes": self.length_bytes, "checksum": self.checksum}


@dataclass(frozen=True, slots=True)
class Unlike:
    """A file that is not as it was committed."""

    name: str
    expected: str
    found: str


def unlike_manifest(
    manifest: Manifest, stored: Mapping[str, int], replaced: Collection[str] = ()
) -> Unlike | None:
    """The first difference between a directory and its batch, by names and lengths; None without.

    `stored` are the entries that readers would read. A file without a row may be missing; one that
    a repair has `replaced` must be.
    """
    committed = {file.name: file for file in manifest.files}
    for name in sorted(stored):
        if name not in committed:
            return Unlike(name, "nothing, for the manifest does not name it", "a file")
        if name in replaced:
            return Unlike(name, "nothing, for a repair took its place", "a file")
        if stored[name] != committed[name].length_bytes:
            expected, found = committed[name].length_bytes, stored[name]
            return Unlike(name, f"{expected} bytes", f"{found} bytes")
    for name, file in sorted(committed.items()):
        if name not in stored and name not in replaced and file.slices:
            return Unlike(name, f"{file.length_bytes} bytes", "no such file")
    return None


def while_read(
    before: Mapping[str, StoredFile], after: Mapping[str, StoredFile]
) -> Mapping[str, StoredFile]:
    """Files as they were found after the read; of one that was another before it nobody knows what
    was read.
    """
    return {
        name: each
        if each.trouble is not None or each == before.get(name)
        else replace(each, checksum=None, trouble="it was changed while it was read")
        for name, each in after.items()
    }


@dataclass(frozen=True, slots=True)
class UnknownFile:
    """A file in a batch's directory that the ledger does not know, as it was listed."""

    name: str
    length_bytes: int
    changed_ms: int


UnknownDirectories = Mapping[str, Iterable[UnknownFile]]
"""By path."""
