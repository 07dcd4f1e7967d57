"""Numbers, instants and places in the words of every report and answer for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Final

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.extent import Extent
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.looks import CameLate
from tallystick.domain.report.troubles import Trouble, named_findings
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.rules.rule import RuleClass
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window

_MOST_PLACES: Final = 6
_MOST_ACCEPTED: Final = 20
_LONG_NAME: Final = 40
_LONG: Final = re.compile(r"(?<!\S)(?=\S{60})\S*[^\s.,:;]")
_KINDS: Final = {
    RuleClass.LOSS: ("is missing", "are missing"),
    RuleClass.DUPLICATE: ("is there twice", "are there twice"),
    RuleClass.CORRUPTION: ("is not as it was", "are not as they were"),
    RuleClass.STALLED: ("waits", "wait"),
    RuleClass.WARNING: ("waits", "wait"),
}
"""What is the matter with one offset or row, and with several, by the kind of their rule."""
_MATTERS: Final = {FindingCode.COULD_NOT_TELL: ("is in doubt", "are in doubt")}
"""The same, where the kind does not say it."""


def with_capital(words: str) -> str:
    """The words as a sentence begins; names in them stay as they are.

    >>> with_capital("finding 3 has the rule A1")
    'Finding 3 has the rule A1'
    """
    return words[:1].upper() + words[1:]


def instant_text(instant: datetime | None) -> str:
    """The instant to the second, in UTC; a dash where there is none."""
    if instant is None:
        return "-"
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def minute_text(instant: datetime) -> str:
    """The instant to the minute, in UTC."""
    return instant.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def window_text(window: Window | None) -> str:
    """The window in UTC, without its end's day while that is the start's, up to 24:00; or a dash.

    >>> window_text(Window(datetime(2026, 11, 1, 6, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC)))
    '2026-11-01 06:00-24:00'
    """
    if window is None:
        return "-"
    start, end = window.from_instant, window.until_instant
    clock = f"{end:%H:%M}" if end.date() == start.date() else "24:00"
    if (end - timedelta(microseconds=1)).date() != start.date():
        clock = f"{end:%Y-%m-%d %H:%M}"
    return f"{start:%Y-%m-%d %H:%M}-{clock}"


def grouped(value: int | None) -> str:
    """The number in groups of three; a dash where there is none."""
    return "-" if value is None else f"{value:,}".replace(",", " ")


def counted(noun: str, count: int) -> str:
    """So many of them.

    >>> counted("batch", 1), counted("batch", 1200), counted("finding", 0)
    ('1 batch', '1 200 batches', '0 findings')
    """
    many = f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{grouped(count)} {noun if count == 1 else many}"


def duration_text(seconds: float | None) -> str:
    """About how long; a dash where nobody knows.

    >>> duration_text(90061.0), duration_text(-5.0), duration_text(None)
    ('1 d 1 h', 'overdue', '-')
    """
    if seconds is None:
        return "-"
    if seconds <= 0:
        return "overdue"
    minutes = int(seconds) // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {rest} min" if hours else f"{rest} min {int(seconds) % 60} s"


def interval_text(from_offset: int | None, until_offset: int | None) -> str:
    """The interval, half-open; empty without one."""
    if from_offset is None or until_offset is None:
        return ""
    return f"[{grouped(from_offset)}, {grouped(until_offset)})"


def place_text(finding: FindingPart) -> str:
    """Topic, partition and offsets, as far as the finding has them."""
    topic, partition = finding.topic, finding.partition
    place = topic if partition is None else f"{topic}-{partition}"
    return f"{place} {interval_text(finding.from_offset, finding.until_offset)}".rstrip()


def places_text(findings: Sequence[FindingPart], most: int = _MOST_PLACES) -> str:
    """Names where the findings are, each place once; those beyond the bound are counted."""
    places = list(
        dict.fromkeys(place_text(each) for each in findings if each.partition is not None)
    )
    left = len(places) - most
    more = f" and {grouped(left)} more" if left > 0 else ""
    return ", ".join(places[:most]) + more


def extent_text(trouble: Trouble) -> str:
    """Says where the trouble is, in few words: its one place, or how many it has."""
    if len(trouble.findings) == 1:
        return place_text(trouble.worst)
    intervals = {place_text(each) for each in trouble.findings if each.partition is not None}
    partitions = {each.partition for each in trouble.findings if each.partition is not None}
    if not intervals:
        return f"{trouble.worst.topic}, {grouped(len(trouble.findings))} findings"
    if len(intervals) == 1:
        return intervals.pop()
    many = counted("partition", len(partitions))
    return f"{trouble.worst.topic}, {grouped(len(intervals))} intervals of {many}"


def before_text(by: CompleteBy, instant: str) -> str:
    """Says of a record that it is before the instant: "Everything ... is landed".

    >>> before_text(CompleteBy.RECORD_TIME, "08:00")
    'whose time is before 08:00, late records aside,'
    """
    if by is CompleteBy.RECORD_TIME:
        return f"whose time is before {instant}, late records aside,"
    return f"that was readable before {instant}"


def by_text(by: CompleteBy) -> str:
    """Says behind an instant that a feed is complete up to it by record time, if so."""
    return f" by {by.value}" if by is CompleteBy.RECORD_TIME else ""


def late_text(late: CameLate) -> str:
    """Counts what came late for its window, or for those before an instant; names a batch."""
    where = f" from before {instant_text(late.before)}" if late.before else ""
    many = grouped(late.rows) + (" at most" if late.before else "")
    return (
        f"Late rows{where}: {many}, the oldest of {instant_text(late.oldest_at)}, the newest in"
        f" batch {late.batch_id}."
    )


def landed_text(accepted: Sequence[FindingPart]) -> str:
    """Says what is proven of a feed: nothing that people have accepted is called landed."""
    losses, others = [], []
    for each in accepted:
        until = each.waiver.expires_at.isoformat(timespec="seconds") if each.waiver else "-"
        place = place_text(each)
        if each.verdict is Verdict.PROVEN_LOSS:
            losses.append(f"{place} until {until}")
        else:
            others.append(f"{place} ({each.code} {each.verdict}) until {until}")
    if not accepted:
        return "proven to be landed"
    return (
        "landed"
        + (f", or accepted as lost: {_some(losses)}" if losses else "")
        + (f", or accepted as it stands: {_some(others)}" if others else "")
    )


def _some(words: Sequence[str]) -> str:
    left = len(words) - _MOST_ACCEPTED
    more = f"; and {grouped(left)} more: tallystick complete FEED --json" if left > 0 else ""
    return "; ".join(words[:_MOST_ACCEPTED]) + more


def concern_text(trouble: Trouble) -> str:
    """Says how much the trouble is about, of which time, and until when Kafka has it; or nothing.

    What Kafka has is of no interest any more once the trouble is closed.
    """
    extent, worst = trouble.extent, trouble.worst
    if extent is None:
        return ""
    many = extent.offsets if extent.rows is None else extent.rows
    code = FindingCode(worst.code)
    one, several = _MATTERS.get(code) or _KINDS[RULE_OF[code].kind]
    if trouble.is_closed:
        one, several = "was concerned", "were concerned"
    matter = one if many == 1 else several
    if not worst.verdict.value.startswith("PROVEN"):
        matter = matter.replace("are ", "may be ").replace("is ", "may be ")
    noun = "offset" if extent.rows is None else "row"
    said = f"{counted(noun, many)}{_time_text(extent)} {matter}."
    return said if trouble.is_closed else f"{said} {_kept_text(extent)}".rstrip()


def _time_text(extent: Extent) -> str:
    since, until = extent.since, extent.until
    if since is None:
        return ""
    if until is None:
        return f" of the batch of {minute_text(since)}Z"
    of = "of" if extent.is_by_time else "landed under"
    if until - since == timedelta(days=1) and since.time() == time():
        return f" {of} {since:%Y-%m-%d}"
    return f" {of} {window_text(Window(since, until))}"


def _kept_text(extent: Extent) -> str:
    """What Kafka has of it, as of the look that says so."""
    looked_at, kept = extent.looked_at, extent.kept
    if looked_at is None:
        return ""
    seen = f"{minute_text(looked_at)}Z"
    if kept is None:
        return f"If Kafka still has them is unknown: the look of {seen} does not tell."
    if kept == 0:
        return f"Kafka has them no more (seen {seen})."
    part = "all of them" if kept == extent.offsets else f"{grouped(kept)} of the offsets"
    until = ""
    if extent.kept_until and extent.kept_until > looked_at:
        until = f" until about {minute_text(extent.kept_until)}Z"
    elif extent.kept_until:
        until = ", and may delete them at any moment"
    return f"Kafka has {part}{until} (seen {seen})."


def in_short(text: str) -> str:
    """The text, of whose long paths and names only ends are left.

    >>> in_short(f"/landing/{'dt=2026-11-25/' * 5}part-{'0' * 60}.parquet is missing.")
    '.../part-00000000000...000000000000.parquet is missing.'
    """
    return _LONG.sub(_ends, text)


def long_names_in(text: str) -> list[str]:
    """The long paths and names, whole."""
    return list(dict.fromkeys(_LONG.findall(text)))


def _ends(match: re.Match[str]) -> str:
    folder, slash, name = match[0].rpartition("/")
    shown = name if len(name) <= _LONG_NAME else f"{name[:16]}...{name[-20:]}"
    return f"...{slash}{shown}" if folder else shown


def trouble_words(trouble: Trouble) -> list[str]:
    """Says what the trouble is and where, in one line or more."""
    worst = trouble.worst
    numbered = f"{named_findings(trouble.numbers)}: " if trouble.numbers else ""
    much = f"{concern}  " if (concern := concern_text(trouble)) else ""
    said = f"{trouble.verdict.value}  {much}{worst.code} {worst.name}: {worst.cause}"
    lines = [f"{numbered}{extent_text(trouble)}  {said}"]
    lines += [f"  and {each.code} {each.name}: {each.cause}" for each in trouble.by_rule[1:]]
    if places_text(trouble.findings) not in ("", extent_text(trouble)):
        lines.append(f"  where: {places_text(trouble.findings)}")
    return lines


def trouble_lines(trouble: Trouble) -> list[str]:
    """The same, and what to do next, unless it is accepted or closed."""
    return [*trouble_words(trouble), *(f"  next: {each}" for each in trouble.next_steps)]


def troubles_text(troubles: int | None, findings: int) -> str:
    """Counts troubles, and findings where that is another number; these alone for None.

    >>> troubles_text(1, 1), troubles_text(2, 13), troubles_text(None, 5000)
    ('1 trouble', '2 troubles (13 findings)', '5 000 findings')
    """
    if troubles is None:
        return counted("finding", findings)
    many = counted("trouble", troubles)
    return many if troubles == findings else f"{many} ({counted('finding', findings)})"
