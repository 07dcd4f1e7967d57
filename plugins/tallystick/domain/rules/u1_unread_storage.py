"""U1, could not tell, of storage: what could not be listed or read (L2, L3).

What could not be asked changes nothing that is on record of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.evidence import path_in
from tallystick.domain.rules.file_findings import FileRows, finding_at_path, findings_of_file
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import U1
from tallystick.domain.verdicts import Verdict


def unread_file(plan: BatchPlan, file: LandedFile, path: str, now: StoredFile) -> Iterator[Finding]:
    """A committed file that is there, and whose checksum nobody could tell, or compare."""
    if now.trouble is None or (now.is_stored_anew and now.length_bytes != file.length_bytes):
        return iter(())
    if now.is_stored_anew:
        cause = f"{path} is there, and its bytes are not compared yet: {now.trouble}."
        next_step = f"Let them be read: tallystick reconcile {plan.feed} --level 3"
    else:
        cause = f"{path} is there and can't be read: {now.trouble}"
        next_step = (
            "Bring its blocks back (hdfs fsck); if they are lost, name this finding's number to"
            f" tallystick repair {plan.feed}"
        )
    return findings_of_file(
        plan,
        file,
        U1,
        cause=cause,
        next_step=next_step,
        evidence={"length_bytes": now.length_bytes, "said": now.trouble},
    )


def unread_rows(rows: FileRows, reason: str) -> Finding:
    """A committed file that could not be read in full, which proves nothing about it."""
    return _not_proven(rows, "could not be read, which proves nothing about it", reason)


def read_of_unknown_file(rows: FileRows, reason: str) -> Finding:
    """Rows that were read in full, nobody can tell of which file."""
    doubt = "was read, but nobody can tell if it is the file that was committed"
    return _not_proven(rows, doubt, reason)


def _not_proven(rows: FileRows, doubt: str, reason: str) -> Finding:
    return rows.finding(
        U1,
        Verdict.UNKNOWN,
        cause=f"{rows.path} {doubt}: {reason}.",
        next_step=f"Read again when it answers: tallystick reconcile {rows.plan.feed} --level 3",
        evidence={"said": reason},
    )


def could_not_scrub(feed: str, topic: str, batch_ids: Sequence[BatchId], reason: str) -> Finding:
    """Batches that nobody has read in full: the engine, or storage as a whole, gave no answer."""
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=Level.L3,
        feed=feed,
        topic=topic,
        cause=f"{len(batch_ids)} batch(es) could not be read in full: {reason}",
        next_step=f"Run again when it answers: tallystick reconcile {feed} --level 3",
        evidence={"batches": list(batch_ids), "reason": reason},
        subject="scrub",
    )


def unlisted(feed: str, topic: str, refused: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories that could not be listed, each with the reason: what they hold is unknown."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            path,
            U1,
            cause=f"{path} could not be listed: {reason}",
            next_step=f"Let our user read it, then: tallystick reconcile {feed}",
            evidence={"path": path, "said": reason},
        )
        for path, reason in sorted(refused.items())
    )


def is_unlisted(found: Finding) -> bool:
    """True for a finding about a directory that could not be listed."""
    is_of_storage = found.rule == U1 and found.level is Level.L2
    return is_of_storage and path_in(found.evidence) is not None


def unread_strays(feed: str, topic: str, strays: Iterable[StrayFile]) -> tuple[Finding, ...]:
    """Strays of which nobody could tell what they hold, or if committed files hold that too."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            each.path,
            U1,
            cause=(
                f"nobody can tell which committed rows are in the stray file {each.path} too:"
                f" {each.trouble}"
            ),
            next_step=f"Mend what the reason names, then: tallystick reconcile {feed}",
            evidence={"stray": each.path, "said": each.trouble},
        )
        for each in strays
        if each.trouble is not None
    )


def unread_feeds(feed: str, topic: str, unread: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories that may be another feed's, each with the reason why nobody can tell."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            directory,
            U1,
            cause=f"nobody can tell if another feed lands in {directory}: {reason}",
            next_step=(
                f"Let our user read the manifests below it, then: tallystick reconcile {feed}"
            ),
            evidence={"directory": directory, "said": reason},
        )
        for directory, reason in sorted(unread.items())
    )


def unread_manifests(feed: str, topic: str, refused: Mapping[str, str]) -> tuple[Finding, ...]:
    """Published directories whose manifest could not be read, each with the reason."""
    return tuple(
        finding_at_path(
            feed,
            topic,
            manifest,
            U1,
            cause=f"{manifest} could not be read: {reason}",
            next_step=(
                f"Let our user read it, then: tallystick reconcile {feed}. If its blocks are"
                f" lost, delete the file: tallystick repair {feed} writes it anew after a"
                " reconcile."
            ),
            evidence={"manifest": manifest, "said": reason},
        )
        for each, reason in refused.items()
        for manifest in [f"{each}/{MANIFEST_NAME}"]
    )
