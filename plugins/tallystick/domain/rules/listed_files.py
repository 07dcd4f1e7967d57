"""Level L2: committed files against the listing: missing, changed, or not to be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.rules.a8_committed_file_missing import missing_file
from tallystick.domain.rules.c1_content_changed import changed_file
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_unread_storage import unread_file


def missing_or_changed(
    manifest: Manifest, directory: str, stored: Mapping[str, StoredFile]
) -> Iterator[Finding]:
    """What is told of each slice of each file that is not as it was when it was committed.

    A file that could not be asked is UNKNOWN; its length may prove by itself that it has changed.
    """
    plan = manifest.plan
    for file in manifest.files:
        now, path = stored.get(file.name), f"{directory}/{file.name}"
        if now is None:
            yield from missing_file(plan, file, path)
        else:
            yield from unread_file(plan, file, path, now)
            yield from changed_file(plan, file, path, now)
