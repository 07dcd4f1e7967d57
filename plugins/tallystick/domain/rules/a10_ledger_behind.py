"""A10, ledger behind: storage shows batches that the ledger has never heard of.

1. Such is a manifest that names a commit which the ledger does not know; and a batch's directory
   without one, with rows that it does not know.
2. What such a ledger takes for unread, and so for lost, is not proven to be.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final

from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.stored_file import UnknownDirectories, UnknownFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

UNKNOWN_BATCH: Final = "unknown batch"
BARE: Final = "no manifest"


def _its_ledger(found: Finding) -> str:
    return found.subject if found.name == BARE else f"ledger of feed {found.feed}"


A10: Final = Rule(
    code=FindingCode.LEDGER_BEHIND,
    names=(UNKNOWN_BATCH, BARE),
    kind=RuleClass.DUPLICATE,
    compares=(
        "published manifests, and rows in batches' directories without one, against the ledger"
    ),
    endings={Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a copy of a batch that the ledger knows, or of committed rows, is A9",
    remedy=(
        "planning stops; rebuild or restore the ledger; a directory without a manifest is moved"
        " to quarantine by its number"
    ),
    one_cause=_its_ledger,
    mending=Mending.QUARANTINE_IF_BARE,
    traits={Trait.LACKS_WITNESS},
)


def ledger_behind(
    feed: str, topic: str, told: UnknownDirectories, bare: UnknownDirectories
) -> tuple[Finding, ...]:
    """Published batches that the ledger has never heard of: it was lost, or restored.

    `bare` are directories of batches that have lost their manifest.
    """
    return (
        *(_with_manifest(feed, topic, path, files) for path, files in told.items()),
        *(_bare(feed, topic, path, files) for path, files in bare.items()),
    )


def _with_manifest(feed: str, topic: str, path: str, files: Iterable[UnknownFile]) -> Finding:
    return finding(
        A10,
        Place.at_path(feed, topic, path),
        name=UNKNOWN_BATCH,
        cause=f"{path} names a commit that the ledger does not know: it is behind the storage.",
        next_step=f"Nothing is landed until this is mended: tallystick ledger rebuild {feed}",
        evidence={"path": path, **_as_listed(files)},
    )


def _bare(feed: str, topic: str, path: str, files: Iterable[UnknownFile]) -> Finding:
    return finding(
        A10,
        Place.at_path(feed, topic, path),
        name=BARE,
        cause=(
            f"{path} has no {MANIFEST_NAME}, and holds rows that the ledger does not know: a batch"
            " that it has forgotten, or files that were put there."
        ),
        next_step=(
            "Nothing is landed until this is mended. What the files hold can be entered:"
            f" tallystick ledger rebuild {feed} --without-manifest. What is no batch is moved"
            f" to quarantine by this finding's number: tallystick repair {feed} NUMBER"
        ),
        evidence={"path": path, **_as_listed(files)},
    )


def _as_listed(files: Iterable[UnknownFile]) -> Mapping[str, object]:
    """Which files these are: a file more, or one that was written anew, is other evidence."""
    listed = sorted((each.name, each.length_bytes, each.changed_ms) for each in files)
    return {
        "file_count": len(listed),
        "length_bytes": sum(length for _, length, _ in listed),
        "listing_sha256": sha256(json.dumps(listed).encode()).hexdigest(),
    }


def is_ledger_behind(found: Iterable[Finding]) -> bool:
    """True when one of the findings says so."""
    return any(each.rule == A10 for each in found)


def perhaps_landed(found: Iterable[Finding]) -> list[Finding]:
    """The same findings of a ledger that is behind: what it takes for unread, and so for lost, is
    UNKNOWN, for a batch that it does not know may have landed it.
    """
    return [
        replace(
            each,
            verdict=Verdict.UNKNOWN,
            cause=(
                f"{each.cause} But the ledger lacks published batches (A10): they may hold these"
                " offsets."
            ),
            next_step=f"Let the ledger catch up first: tallystick ledger rebuild {each.feed}",
        )
        if each.rule.has(Trait.RESTS_ON_FRONTIER) and each.verdict is Verdict.PROVEN_LOSS
        else each
        for each in found
    ]
