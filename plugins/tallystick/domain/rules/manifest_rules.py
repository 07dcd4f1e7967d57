"""The manifests of published directories against the committed ones: level L2.

1. A published directory without its manifest, or with another one, is no loss: readers of the rows
   miss nothing. It is told before the ledger is lost too.
2. One that could not be read is unknown, and changes nothing that is on record of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.states import Verdict
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.n3_unfinished_batch import N3
from tallystick.domain.rules.storage_rules import of_path
from tallystick.domain.rules.u1_could_not_tell import U1


@dataclass(frozen=True, slots=True)
class LostManifest:
    """What became of a published directory's manifest."""

    length_bytes: int | None = None
    """None when it is gone."""
    sha256: str | None = None

    def __str__(self) -> str:
        if self.length_bytes is None:
            return "is gone"
        return f"has {self.length_bytes} bytes that are not the committed ones"


def without_manifest(
    feed: str, topic: str, directories: Mapping[str, LostManifest]
) -> tuple[Finding, ...]:
    """Published directories, each with what became of its manifest: a rebuilt ledger would not know
    their commits as they were.
    """
    return tuple(
        of_path(
            feed,
            topic,
            f"{each}/{MANIFEST_NAME}",
            N3,
            Verdict.UNKNOWN,
            f"{each} is published, and its {MANIFEST_NAME} {lost}: readers miss nothing, but"
            " a ledger rebuilt from the storage would not know this batch as it was committed.",
            f"Have it written anew, as it was committed: ./tallystick repair {feed}",
            named_as="manifest",
            evidence={"length_bytes": lost.length_bytes, "sha256": lost.sha256},
        )
        for each, lost in directories.items()
    )


def unread_manifests(feed: str, topic: str, refused: Mapping[str, str]) -> tuple[Finding, ...]:
    """Published directories whose manifest could not be read, each with the reason."""
    return tuple(
        of_path(
            feed,
            topic,
            f"{each}/{MANIFEST_NAME}",
            U1,
            Verdict.UNKNOWN,
            f"{each}/{MANIFEST_NAME} could not be read: {reason}",
            f"Let our user read it, then: ./tallystick reconcile {feed}. If its blocks are lost,"
            f" delete the file: ./tallystick repair {feed} writes it anew after a reconcile.",
            named_as="manifest",
            evidence={"said": reason},
        )
        for each, reason in refused.items()
    )
