"""The ledger's files against what really lies in HDFS, both ways: level L2, and at publishing.

1. A committed file that is missing, shorter, or has another checksum is named with its ranges, and
   with the length and checksum that it has now.
2. A missing file that lies elsewhere, by length and checksum, is that file: no row is lost.
3. A manifest that names a commit which the ledger doesn't know means that the ledger is behind; so
   does a batch's directory without one, with rows that it doesn't know.
4. Rows that such a commit may hold are not called lost: a repair may have landed them again, or a
   run whose commit is forgotten. Nor are rows that may lie where nobody could ask.
5. What could not be asked changes nothing that is on record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import MANIFEST_NAME
from tallystick.domain.batches.states import Verdict
from tallystick.domain.rules.a8_committed_file_missing import A8
from tallystick.domain.rules.a10_ledger_behind import A10
from tallystick.domain.rules.c1_content_changed import C1
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.rule import Rule
from tallystick.domain.rules.u1_could_not_tell import U1

SOLE_ROWS: Final = "sole_rows"
_UNASKED_IF_NONE: Final = ("checksum", SOLE_ROWS)
_NOT_ASKED: Final = "not_asked"
_GENERATION: Final = re.compile(r"/gen=(\d+)/")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as storage shows it now."""

    length_bytes: int
    checksum: str | None
    """None when nobody could tell."""
    trouble: str | None = None
    """Why nobody could tell."""

    def is_as_committed(self, file: LandedFile) -> bool:
        """True when length and checksum were asked, and are those of the commit."""
        now = (self.length_bytes, self.checksum, self.trouble)
        return now == (file.length_bytes, file.checksum, None)

    def as_evidence(self) -> Mapping[str, object]:
        """Which bytes these are: a finding about them is of these bytes, and of no others."""
        return {"length_bytes": self.length_bytes, "checksum": self.checksum}


def is_read(name: str) -> bool:
    """True for an entry that any reader reads when it is given the directory.

    All skip names that begin with `.`, or with `_`, but Spark takes `_a=1` for a partition column.
    No suffix hides a file: Spark alone skips `._COPYING_`, which `hdfs dfs -put` writes and leaves
    behind when it is killed (HadoopFSUtils.shouldFilterOutPathName); Hive, Trino and pyarrow read
    it.
    """
    return not (name.startswith(".") or (name.startswith("_") and "=" not in name))


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


def missing_or_changed(
    manifest: Manifest,
    directory: str,
    stored: Mapping[str, StoredFile],
    elsewhere: Mapping[str, str] | None = None,
) -> Iterator[Finding]:
    """What is told of each slice of each file that is not as it was when it was committed.

    `elsewhere` are the paths at which missing files were found, by name. A file that could not be
    asked is UNKNOWN; its length may prove by itself that it has changed.
    """
    for file in manifest.files:
        found, path = stored.get(file.name), f"{directory}/{file.name}"
        moved = (elsewhere or {}).get(file.name)
        if found is None and moved:
            yield from _moved(manifest, file, path, moved)
        elif found is None:
            cause = f"committed rows are not in storage: {path} is missing."
            yield from _per_slice(manifest, file, A8, cause)
        else:
            yield from _changed(manifest, file, path, found)


def _changed(
    manifest: Manifest, file: LandedFile, path: str, found: StoredFile
) -> Iterator[Finding]:
    if found.trouble is not None:
        cause = f"{path} is there and can't be read: {found.trouble}"
        said = {"length_bytes": found.length_bytes, "said": found.trouble}
        yield from _per_slice(manifest, file, U1, cause, said)
    if found.length_bytes != file.length_bytes:
        cause = f"{path} has {found.length_bytes} bytes, {file.length_bytes} were committed."
    elif found.trouble is None and found.checksum != file.checksum:
        cause = f"{path} has checksum {found.checksum}, {file.checksum} was committed."
    else:
        return
    yield from _per_slice(manifest, file, C1, cause, found.as_evidence())


def _moved(manifest: Manifest, file: LandedFile, path: str, lies_at: str) -> Iterator[Finding]:
    step = (
        f"Move it back: hdfs dfs -mv {lies_at} {path}. Or name this finding's number, and it is"
        f" moved: ./tallystick repair {manifest.plan.feed} NUMBER"
    )
    cause = (
        f"committed rows are not where readers are sent: {path} is missing, and {lies_at} is that"
        " file, by length and checksum."
    )
    missing, evidence = A8, {"lies_at": lies_at}
    for each in _per_slice(manifest, file, missing, cause, evidence):
        yield replace(each, verdict=Verdict.UNKNOWN, next_step=step)


def _per_slice(
    manifest: Manifest,
    file: LandedFile,
    rule: Rule,
    cause: str,
    evidence: Mapping[str, object] | None = None,
) -> Iterator[Finding]:
    feed, is_known = manifest.plan.feed, rule != U1
    for each in file.slices:
        yield Finding(
            rule=rule,
            verdict=Verdict.PROVEN_LOSS if is_known else Verdict.UNKNOWN,
            level=Level.L2,
            feed=feed,
            topic=manifest.plan.topic,
            generation=manifest.plan.ordinal,
            partition=each.partition,
            from_offset=each.first_offset,
            until_offset=each.last_offset + 1,
            cause=cause,
            next_step=(
                f"Land these offsets again while the broker has them: ./tallystick repair {feed}"
                if is_known
                else "Bring its blocks back (hdfs fsck); if they are lost, name this finding's"
                f" number to ./tallystick repair {feed}"
            ),
            evidence={"batch": manifest.plan.batch_id, "file": file.name, **(evidence or {})},
            subject=file.name,
        )


def as_far_as_asked(found: Finding, standing: Iterable[Finding]) -> Finding:
    """The finding; the one on record where a part of its evidence could not be asked.

    Only while all else is as it was on record: who has accepted that has accepted this.
    """
    unasked = {each: None for each in _UNASKED_IF_NONE if found.evidence.get(each, "") is None}
    known = next((each for each in standing if each.key == found.key), None)
    if known is None or not (unasked or _NOT_ASKED in found.evidence):
        return found
    is_as_before = _NOT_ASKED in found.evidence or {**known.evidence, **unasked} == found.evidence
    return known if is_as_before else found


@dataclass(frozen=True, slots=True)
class UnknownFile:
    """A file in a batch's directory that the ledger does not know, as it was listed."""

    name: str
    length_bytes: int
    changed_ms: int


UnknownDirectories = Mapping[str, Iterable[UnknownFile]]
"""By path."""


def ledger_behind(
    feed: str, topic: str, told: UnknownDirectories, bare: UnknownDirectories
) -> tuple[Finding, ...]:
    """Published batches that the ledger has never heard of: it was lost, or restored.

    `bare` are directories of batches that have lost their manifest.
    """
    return tuple(
        of_path(
            feed,
            topic,
            path,
            A10,
            Verdict.UNKNOWN,
            f"{path} names a commit that the ledger does not know: it is behind the storage.",
            f"Nothing is landed until this is mended: ./tallystick ledger rebuild {feed}",
            evidence=_as_listed(files),
        )
        for path, files in told.items()
    ) + tuple(
        of_path(
            feed,
            topic,
            path,
            A10,
            Verdict.UNKNOWN,
            f"{path} has no {MANIFEST_NAME}, and holds rows that the ledger does not know: a batch"
            " that it has forgotten, or files that were put there.",
            "Nothing is landed until this is mended. What the files hold can be entered:"
            f" ./tallystick ledger rebuild {feed} --without-manifest. What is no batch is moved"
            f" aside, and kept, by this finding's number: ./tallystick repair {feed} NUMBER",
            evidence={"is_bare": True, **_as_listed(files)},
        )
        for path, files in bare.items()
    )


def _as_listed(files: Iterable[UnknownFile]) -> Mapping[str, object]:
    """Which files these are: a file more, or one that was written anew, is other evidence."""
    listed = sorted((each.name, each.length_bytes, each.changed_ms) for each in files)
    return {
        "file_count": len(listed),
        "length_bytes": sum(length for _, length, _ in listed),
        "listing_sha256": sha256(json.dumps(listed).encode()).hexdigest(),
    }


def is_bare(finding: Finding) -> bool:
    """True for a finding about a batch's directory that the ledger does not know, and that has no
    manifest.
    """
    return finding.code is FindingCode.LEDGER_BEHIND and "is_bare" in finding.evidence


def perhaps_forgotten(found: Iterable[Finding], unknown: Sequence[BatchPlan]) -> list[Finding]:
    """The same findings; missing rows that a batch unknown to the ledger may hold are UNKNOWN."""
    return [
        next((_forgotten(each, plan) for plan in unknown if _may_hold(plan, each)), each)
        for each in found
    ]


def perhaps_unasked(found: Iterable[Finding], unasked: Iterable[str]) -> list[Finding]:
    """The same findings; missing rows are UNKNOWN while a path could not be asked where they may
    lie: one of their generation, or of none.
    """
    places = [(path, generation_in(path)) for path in unasked]
    return [
        next((_unasked(each, path) for path, ordinal in places if _may_lie(ordinal, each)), each)
        for each in found
    ]


def not_yet_asked(found: Iterable[Finding], path: str) -> list[Finding]:
    """The same findings of who has not looked in this path; missing rows may lie there."""
    why = f"They may lie elsewhere in {path}; this look did not go there."
    return [
        _unknown(each, path, why, f"Look there: ./tallystick reconcile {each.feed}")
        if _may_lie(None, each)
        else each
        for each in found
    ]


def _may_lie(ordinal: int | None, found: Finding) -> bool:
    is_missing = found.code is FindingCode.COMMITTED_FILE_MISSING and found.level is Level.L2
    is_lost = is_missing and found.verdict is Verdict.PROVEN_LOSS
    return is_lost and ordinal in (None, found.generation)


def _unasked(found: Finding, path: str) -> Finding:
    why = f"Nobody could look for them in {path}: they may be there."
    step = f"Let our user read it; then look again: ./tallystick reconcile {found.feed}"
    return _unknown(found, path, why, step)


def _unknown(found: Finding, path: str, why: str, next_step: str) -> Finding:
    """The same, of rows that may lie in a path where nobody has looked."""
    return replace(
        found,
        verdict=Verdict.UNKNOWN,
        cause=f"{found.cause} {why}",
        next_step=next_step,
        evidence={**found.evidence, _NOT_ASKED: path},
    )


def generation_in(path: str) -> int | None:
    """The ordinal of the generation whose directory a path lies in; None outside of all."""
    match = _GENERATION.search(f"{path}/")
    return int(match[1]) if match else None


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
            next_step=f"Let the ledger catch up first: ./tallystick ledger rebuild {each.feed}",
        )
        if each.rule.rests_on_frontier and each.verdict is Verdict.PROVEN_LOSS
        else each
        for each in found
    ]


def _may_hold(plan: BatchPlan, found: Finding) -> bool:
    if found.code is not FindingCode.COMMITTED_FILE_MISSING or plan.ordinal != found.generation:
        return False
    from_offset, until_offset = found.from_offset, found.until_offset
    return any(
        each.offsets.partition.partition == found.partition
        and (from_offset is None or from_offset < each.offsets.until_offset)
        and (until_offset is None or until_offset > each.offsets.from_offset)
        for each in plan.ranges
    )


def _forgotten(found: Finding, plan: BatchPlan) -> Finding:
    return replace(
        found,
        verdict=Verdict.UNKNOWN,
        cause=f"{found.cause} Batch {plan.batch_id}, unknown to the ledger, may hold them.",
        next_step=f"Let the ledger catch up first: ./tallystick ledger rebuild {found.feed}",
        evidence={**found.evidence, "perhaps_in": plan.batch_id},
    )


def of_path(
    feed: str,
    topic: str,
    path: str,
    rule: Rule,
    verdict: Verdict,
    cause: str,
    next_step: str,
    named_as: str = "path",
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """A finding about a file or a directory of the feed."""
    return Finding(
        rule=rule,
        verdict=verdict,
        level=Level.L2,
        feed=feed,
        topic=topic,
        cause=cause,
        next_step=next_step,
        evidence={named_as: path, **(evidence or {})},
        subject=path,
    )


def unlisted(feed: str, topic: str, refused: Mapping[str, str]) -> tuple[Finding, ...]:
    """Directories that could not be listed, each with the reason: what they hold is unknown."""
    return tuple(
        of_path(
            feed,
            topic,
            path,
            U1,
            Verdict.UNKNOWN,
            f"{path} could not be listed: {reason}",
            f"Let our user read it, then: ./tallystick reconcile {feed}",
            evidence={"said": reason},
        )
        for path, reason in sorted(refused.items())
    )


def is_unlisted(finding: Finding) -> bool:
    """True for a finding about a directory that could not be listed."""
    is_unknown = finding.code is FindingCode.COULD_NOT_TELL and finding.level is Level.L2
    return is_unknown and "path" in finding.evidence
