"""A feed file writes values so: names, instants, durations, cron, directories.

Every function gives the value that the text means, or raises ValueError with the reason alone:
which file, line and key it was is known elsewhere. Nothing here opens a file or knows a model.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from croniter import CroniterBadDateError, CroniterError, croniter  # type: ignore[import-untyped]

# Airflow takes these and nothing else that begins with @.
CRON_PRESETS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}
_FIELDS: Final = ("minute", "hour", "day of the month", "month", "day of the week")
MAX_DURATION: Final = timedelta(days=3650)
MAX_SIZE: Final = 10**18

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_DURATION: Final = re.compile(r"(\d+[smhdw])+")
_DURATION_PART: Final = re.compile(r"(\d+)([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SIZE: Final = re.compile(r"(?P<number>\d{1,18})(?P<unit>B|KB|MB|GB|TB)")
_SIZE_UNITS: Final = {"TB": 10**12, "GB": 10**9, "MB": 10**6, "KB": 10**3, "B": 1}
_PATH_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=+@,-]{0,254}")
_MAX_ROOT: Final = 1000


def topic_name(text: str) -> str:
    """The name, if it is one by Kafka's rule; a leading `_` or `.` is legal."""
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise ValueError("")
    return text


def instant(value: object) -> datetime:
    """The instant in UTC; a date is its midnight in UTC.

    >>> instant("2026-11-01T00:00:00+01:00").isoformat()
    '2026-10-31T23:00:00+00:00'
    """
    found = _moment(value)
    if isinstance(found, datetime):
        return _in_utc(found)
    return datetime.combine(found, time(), UTC)


def start_date(value: object, zone: ZoneInfo) -> datetime:
    """The instant; a date is its midnight in the schedule's own time zone."""
    found = _moment(value)
    if isinstance(found, datetime):
        return _in_utc(found).astimezone(zone)
    return datetime.combine(found, time(), zone)


def _in_utc(found: datetime) -> datetime:
    """The same instant in UTC; ValueError without an offset, or where UTC has no such year."""
    if found.utcoffset() is None:
        raise ValueError("it has no offset from UTC (write Z or +01:00)")
    try:
        return found.astimezone(UTC)
    except OverflowError:
        raise ValueError("it is outside of the years 1 to 9999") from None


def _moment(value: object) -> date | datetime:
    """A date or a datetime, as YAML gave it or as ISO 8601 text."""
    if isinstance(value, date):
        return value
    if isinstance(value, str):
        try:
            return date.fromisoformat(value) if len(value) <= 10 else datetime.fromisoformat(value)
        except ValueError:
            pass
    raise ValueError("")


def duration(text: str) -> timedelta:
    """The length of time.

    >>> duration("7d"), duration("1h30m")
    (datetime.timedelta(days=7), datetime.timedelta(seconds=5400))
    """
    if not _DURATION.fullmatch(text):
        raise ValueError("")
    try:
        parts = [
            timedelta(**{_UNITS[unit]: int(number)})
            for number, unit in _DURATION_PART.findall(text)
        ]
        total = sum(parts, timedelta())
    except (OverflowError, ValueError):
        raise ValueError("it is too long") from None
    if not timedelta() < total <= MAX_DURATION:
        raise ValueError("it is zero" if not total else "it is too long")
    return total


def duration_text(length: timedelta) -> str:
    """The length of time as `duration` reads it again; whole seconds.

    >>> duration_text(timedelta(days=1, minutes=90))
    '1d1h30m'
    """
    left, text = int(length.total_seconds()), ""
    for unit, seconds in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        text += f"{count}{unit}" if count else ""
    return text


def size(text: str) -> int:
    """The size in bytes; units count in thousands.

    >>> size("50GB")
    50000000000
    """
    match = _SIZE.fullmatch(text)
    if not match:
        raise ValueError("")
    found = int(match["number"]) * _SIZE_UNITS[match["unit"]]
    if not 0 < found <= MAX_SIZE:
        raise ValueError("it is zero" if not found else "it is too much")
    return found


def size_text(size_bytes: int) -> str:
    """The size as `size` reads it again, in the largest unit that fits.

    >>> size_text(50_000_000_000), size_text(1_500_000_000)
    ('50GB', '1500MB')
    """
    unit, factor = next(each for each in _SIZE_UNITS.items() if size_bytes % each[1] == 0)
    return f"{size_bytes // factor}{unit}"


def cron(text: str) -> str:
    """The expression as five fields, if Airflow can run by it and it ever comes true.

    >>> cron("@hourly")
    '0 * * * *'
    """
    expression = CRON_PRESETS.get(text, text)
    if expression.startswith("@") or len(expression.split()) != 5:
        raise ValueError("it has not five fields")
    try:
        croniter(expression, datetime(2026, 1, 1, tzinfo=UTC)).get_next()
    except CroniterBadDateError:
        raise ValueError("it never comes true") from None
    except CroniterError:
        raise ValueError(_wrong_field(expression)) from None
    return expression


def _wrong_field(expression: str) -> str:
    """Says which of the five fields has no meaning."""
    for at, (name, field) in enumerate(zip(_FIELDS, expression.split(), strict=True)):
        if not croniter.is_valid(" ".join(["*"] * at + [field] + ["*"] * (4 - at))):
            return f"its {name} {field!r} is not possible"
    return "it has no meaning"


def time_zone(text: str) -> ZoneInfo:
    """The time zone of that name."""
    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        raise ValueError("") from None


def directory(text: str) -> str:
    """The directory without needless slashes.

    A part that begins with `_` or `.` would hide the data from every reader. Only characters that
    need no escaping in a URI and are no pattern to Spark: ':' is illegal in HDFS, `[` a pattern.

    >>> directory("/data//landing/")
    '/data/landing'
    """
    if "://" in text:
        raise ValueError("the file system belongs into the connection, give the path alone")
    parts = [part for part in text.split("/") if part]
    if not text.startswith("/") or not parts:
        raise ValueError("")
    wrong = next((part for part in parts if not _PATH_PART.fullmatch(part)), None)
    if wrong is not None:
        raise ValueError(f"the part {wrong!r} is not possible")
    path = "/" + "/".join(parts)
    if len(path) > _MAX_ROOT:
        raise ValueError(f"it is longer than {_MAX_ROOT} characters")
    return path
