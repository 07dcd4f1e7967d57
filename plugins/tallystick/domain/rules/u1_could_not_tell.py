"""U1, could not tell: a witness did not answer, so all that it would have said is unknown.

What could not be asked changes nothing that is on record of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import offset_range
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import file_in, of_topic, path_in
from tallystick.domain.rules.file_findings import FileRows, places_of_file
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

_SAID: Final = "said"


def _its_witness(found: Finding) -> str:
    if file_in(found.evidence):
        return its_file(found)
    return found.subject or f"brokers of topic {found.topic}"


U1: Final = Rule(
    code=FindingCode.COULD_NOT_TELL,
    kind=RuleClass.STALLED,
    compares="the witnesses' answers against what was asked",
    endings={
        Level.L1: Ending.BROKER,
        Level.L2: Ending.LISTING,
        Level.L3: Ending.FULL_READ,
        Level.L4: Ending.BROKER,
    },
    verdicts=(Verdict.UNKNOWN,),
    not_when="every witness answered, and the broker for every partition",
    remedy="mend the witness and run again",
    one_cause=_its_witness,
    mending=Mending.LAND_AGAIN_IF_NAMED,
    traits={Trait.SILENCE, Trait.LACKS_WITNESS, Trait.OF_RUNS, Trait.DOUBTS_FILE},
)


def unheard_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions of which the broker said nothing: unknown as long as it lasts; others go on."""
    leaderless = (
        finding(
            U1,
            Place(feed=feed, topic=snapshot.topic, partition=partition),
            cause=(
                "no leader can say how far this partition may be read: it has none, or a new one"
                " waits for its replicas."
            ),
            next_step="Bring its brokers back; the next run lands what has piled up.",
            evidence=of_topic(snapshot.topic_id),
        )
        for partition in sorted(snapshot.leaderless)
    )
    unlisted = (_unlisted(feed, generations[each], snapshot) for each in sorted(snapshot.unlisted))
    return (*leaderless, *unlisted)


def _unlisted(feed: str, account: GenerationAccount, snapshot: BrokerSnapshot) -> Finding:
    unread = offset_range(account.partition, account.frontier, account.last_seen_until)
    seen = (
        f"it was seen to reach offset {unread.until_offset}, and is landed up to"
        f" {unread.from_offset}"
        if unread
        else f"all that was seen of it, up to offset {account.last_seen_until}, is accounted for"
    )
    return finding(
        U1,
        Place.of_log(feed, account, unread),
        cause=f"the broker does not list this partition any more, under the same topic id; {seen}.",
        next_step=(
            "A topic never loses a partition, so a broker lags behind: compare what each of them"
            f" says (kafka-topics.sh --describe --topic {snapshot.topic}). The look that shows the"
            " partition again ends this."
        ),
        evidence={**of_topic(snapshot.topic_id), "last_seen_until": account.last_seen_until},
    )


class Unread(NamedTuple):
    """A witness, and how it is told that it gave no answer: `what` was asked, and `why` in vain."""

    cause: str
    next_step: str
    subject: str = ""
    """The witness as a whole; empty for one that is asked for one path, or one file."""
    level: Level | None = None
    names: str = ""
    """Under which name the evidence has the path."""


_AGAIN: Final = "Run again when it answers: tallystick reconcile {feed}"
_ASKED: Final = "{what} could not be asked: {why}"
_LET_IT: Final = "Let our user read it, then: tallystick reconcile {feed}"

BROKER: Final = Unread(_ASKED, _AGAIN, "broker", Level.L1)
STORAGE: Final = Unread(_ASKED, _AGAIN, "storage", Level.L2)
LANDED_ROWS: Final = Unread(_ASKED, _AGAIN, "landed rows", Level.L3)
SCRUB: Final = Unread(
    "{what} could not be read in full: {why}", f"{_AGAIN} --level 3", "scrub", Level.L3
)
SECOND_READER: Final = Unread(
    "the second reader could not compare: {why}", f"{_AGAIN} --level 4", "second reader", Level.L4
)

DIRECTORY: Final = Unread("{what} could not be listed: {why}", _LET_IT, names="path")
MANIFEST: Final = Unread(
    "{what} could not be read: {why}",
    f"{_LET_IT}. If its blocks are lost, delete the file: tallystick repair {{feed}} writes it anew"
    " after a reconcile.",
    names="manifest",
)
OTHER_FEED: Final = Unread(
    "nobody can tell if another feed lands in {what}: {why}",
    "Let our user read the manifests below it, then: tallystick reconcile {feed}",
    names="directory",
)
STRAY: Final = Unread(
    "nobody can tell which committed rows are in the stray file {what} too: {why}",
    "Mend what the reason names, then: tallystick reconcile {feed}",
    names="stray",
)

_FILE: Final = Unread(
    "{what} is there and can't be read: {why}",
    "Bring its blocks back (hdfs fsck); if they are lost, name this finding's number to tallystick"
    " repair {feed}",
)
_FILE_STORED_ANEW: Final = Unread(
    "{what} is there, and its bytes are not compared yet: {why}.",
    "Let them be read: tallystick reconcile {feed} --level 3",
)

_READ_AGAIN: Final = "Read again when it answers: tallystick reconcile {feed} --level 3"
ROWS: Final = Unread("{what} could not be read, which proves nothing about it: {why}.", _READ_AGAIN)
ROWS_OF_UNKNOWN_FILE: Final = Unread(
    "{what} was read, but nobody can tell if it is the file that was committed: {why}.", _READ_AGAIN
)


def could_not_tell(
    witness: Unread,
    feed: str,
    topic: str,
    why: str,
    *,
    seen_at: datetime,
    what: str = "",
    remedy: str = "",
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """A witness did not answer: everything it would have said is unknown.

    `remedy` is for what waiting alone does not mend.
    """
    place = Place(feed=feed, topic=topic, subject=witness.subject, level=witness.level)
    seen = {**(evidence or {}), "seen_at": seen_at.isoformat()}
    found = _told(witness, place, what, why, seen)
    return replace(found, next_step=remedy) if remedy else found


def unread_paths(
    witness: Unread, feed: str, topic: str, refused: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Paths of which nobody could tell what they hold, each with the reason."""
    return tuple(
        _told(
            witness, Place.at_path(feed, topic, path), path, why, {witness.names: path, _SAID: why}
        )
        for path, why in sorted(refused.items())
    )


def is_unlisted(found: Finding) -> bool:
    """True for a finding about a directory that could not be listed."""
    is_of_storage = found.rule == U1 and found.level is Level.L2
    return is_of_storage and path_in(found.evidence) is not None


def unread_file(plan: BatchPlan, file: LandedFile, path: str, now: StoredFile) -> Iterator[Finding]:
    """A committed file that is there, and whose checksum nobody could tell, or compare."""
    if now.trouble is None or (now.is_stored_anew and now.length_bytes != file.length_bytes):
        return
    witness = _FILE_STORED_ANEW if now.is_stored_anew else _FILE
    evidence = {"length_bytes": now.length_bytes, _SAID: now.trouble}
    for place in places_of_file(plan, file):
        yield _told(witness, place, path, now.trouble, evidence)


def unread_rows(rows: FileRows, why: str, witness: Unread = ROWS) -> Finding:
    """Rows of a committed file that were not read in full, or nobody can tell of which file."""
    return _told(witness, rows.place, rows.path, why, {_SAID: why})


def _told(
    witness: Unread, place: Place, what: str, why: str, evidence: Mapping[str, object]
) -> Finding:
    return finding(
        U1,
        place,
        cause=witness.cause.format(what=what, why=why),
        next_step=witness.next_step.format(feed=place.feed),
        evidence=evidence,
    )
