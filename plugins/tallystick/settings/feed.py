"""A feed is one topic, landed under one directory by one schedule. Models of a feed file.

Every field says in one place what it accepts; the words are shown when a value is refused. The
models are immutable, and know neither files nor lines.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Final, Literal, TypeVar
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tallystick.settings import notation, spark_conf
from tallystick.settings.cadence import WindowSchedule
from tallystick.settings.labels import refusal_of_label

T = TypeVar("T")

_MAX_INT: Final = 2**63 - 1
_ZSTD_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Accepted:
    """Says what a field accepts, to the person who wrote something else."""

    words: str


def _refused(reason: str) -> PydanticCustomError:
    """A refusal whose text is the reason and nothing else; it may be empty."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason})


def checked(check: Callable[[Any], T]) -> Callable[[Any], T]:
    """Returns the check, with its ValueError in pydantic's terms."""

    def validate(value: Any) -> T:
        try:
            return check(value)
        except ValueError as error:
            raise _refused(str(error)) from None

    return validate


def _without_refusals(
    pairs: Mapping[str, str], refusal_of: Callable[[str, str], str | None]
) -> Mapping[str, str]:
    """The pairs; raises the reasons against those that are refused, by key."""
    reasons = {key: refusal_of(key, value) for key, value in pairs.items()}
    refusals = {key: reason for key, reason in reasons.items() if reason}
    if refusals:
        raise PydanticCustomError("refused_keys", "refused keys", {"refusals": refusals})
    return pairs


def _duration(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError("")
    return notation.duration(value)


def _size(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return notation.size(f"{value}B")
    if not isinstance(value, str):
        raise ValueError("")
    return notation.size(value)


def _records_or_off(value: object) -> object:
    # YAML 1.1 reads the bare word as false.
    return None if value is False or value == "off" else value


def _start(value: object) -> object:
    return value if value in ("earliest", "latest") else notation.instant(value)


def _time_zone_name(text: str) -> str:
    return notation.time_zone(text).key


Count = Annotated[int, Field(gt=0, le=_MAX_INT), Accepted("a whole number above 0")]
Cron = Annotated[
    str,
    AfterValidator(checked(notation.cron)),
    Accepted('a cron expression of five fields, in quotes ("0 * * * *"), or @hourly, @daily ...'),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(checked(_duration)),
    PlainSerializer(notation.duration_text, when_used="json"),
    Accepted("a length of time such as 90s, 6h, 7d"),
]
Size = Annotated[
    int,
    BeforeValidator(checked(_size)),
    PlainSerializer(notation.size_text, when_used="json"),
    Accepted("a size such as 500MB, 50GB, 2TB"),
]
ConnectionId = Annotated[
    str,
    # An environment variable `AIRFLOW_CONN_<ID>` can carry it, too.
    Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,199}$"),
    Accepted("an Airflow connection id: letters, digits and _"),
]

Pairs = Annotated[Mapping[str, str], BeforeValidator(lambda value: {} if value is None else value)]


class Section(BaseModel):
    """A part of a feed file; a part that is there but empty has all its defaults."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, populate_by_name=True, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_is_default(cls, data: Any) -> Any:
        return {} if data is None else data


class Reading(Section):
    """How topics are read, whichever they are."""

    connection: ConnectionId = "kafka_default"
    isolation: Annotated[
        Literal["read_committed", "read_uncommitted"],
        Accepted("read_committed, read_uncommitted"),
    ] = "read_committed"
    start: Annotated[
        Literal["earliest", "latest"] | datetime,
        BeforeValidator(checked(_start)),
        Accepted("earliest, latest, or an instant such as 2026-11-01T00:00:00Z"),
    ] = "earliest"
    """Asked for the feed's very first plan only; an instant is in UTC."""
    export_group: Annotated[
        str | None,
        Field(pattern=r"^[A-Za-z0-9._-]{1,255}$"),
        Accepted("a consumer group of its own: 1 to 255 of a-z, A-Z, 0-9, '.', '_', '-'"),
    ] = None
    """Shows tools that watch lag what is landed; None: nothing is committed to Kafka."""


class Source(Reading):
    """The feed reads this."""

    topic: Annotated[
        str,
        AfterValidator(checked(notation.topic_name)),
        Accepted("a Kafka topic: 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'"),
    ]


class Schedule(Section):
    """Airflow lands at these times."""

    cron: Cron
    timezone: Annotated[
        str,
        AfterValidator(checked(_time_zone_name)),
        Accepted("a time zone's name such as UTC or Europe/Berlin"),
    ] = "UTC"
    start_date: Annotated[
        datetime, Accepted("a date such as 2026-11-01, or an instant such as 2026-11-01T06:00:00Z")
    ]
    """Beginning (included) of the first window; aware, in the schedule's time zone."""

    @field_validator("start_date", mode="before")
    @classmethod
    def _in_time_zone(cls, value: object, info: ValidationInfo) -> datetime:
        zone = ZoneInfo(info.data.get("timezone", "UTC"))
        return checked(lambda found: notation.start_date(found, zone))(value)


class PlanLimits(Section):
    """One run goes so far, and one batch holds so much."""

    until: Annotated[Literal["now", "window_end"], Accepted("now, window_end")] = "now"
    max_records_per_run: Count = 50_000_000
    max_records_per_batch: Count = 10_000_000
    max_partitions_per_batch: Count = 500


class Target(Section):
    """The feed is landed here."""

    connection: ConnectionId = "webhdfs_default"
    root: Annotated[
        str,
        AfterValidator(checked(notation.directory)),
        Accepted(
            "an absolute HDFS directory such as /data/landing; its parts hold a-z, A-Z, 0-9"
            " and . _ - = + @ , and begin with a letter or digit"
        ),
    ]
    """Normalised: no slash at its end, none twice."""
    compression: Annotated[
        Literal["zstd", "snappy", "lz4_raw", "none"], Accepted("zstd, snappy, lz4_raw, none")
    ] = "zstd"
    compression_level: Annotated[
        int | None,
        Field(ge=1, le=22, validate_default=True),
        Accepted("a whole number from 1 to 22, with zstd only"),
    ] = None
    """None for a codec without levels; 1 for zstd when nothing else is said."""
    replication: Annotated[
        int | None, Field(ge=1, le=512), Accepted("a whole number from 1 to 512")
    ] = None
    """None: the file system's own default."""
    target_file_bytes: Count = 256 << 20

    @field_validator("compression_level", mode="after")
    @classmethod
    def _level_fits_codec(cls, value: int | None, info: ValidationInfo) -> int | None:
        codec = info.data.get("compression")
        if codec == "zstd":
            return _ZSTD_LEVEL if value is None else value
        if value is not None and codec is not None:
            raise _refused(f"{codec} has no levels")
        return value


class SparkSettings(Section):
    """Spark runs here, and is told this beyond what the landing sets itself."""

    connection: ConnectionId = "spark_default"
    pool: Annotated[
        str,
        Field(pattern=r"^[A-Za-z0-9._-]{1,250}$"),
        Accepted("an Airflow pool's name: 1 to 250 of a-z, A-Z, 0-9, '.', '_', '-'"),
    ] = "default_pool"
    """Where landing tasks wait for their turn; it must exist, or Airflow never starts them."""
    max_application_time: Duration = timedelta(hours=6)
    """An application that runs for longer is ended, and its batch is held no longer."""
    conf: Annotated[Pairs, Accepted("Spark properties, each a name and a value")] = Field(
        default_factory=dict
    )

    @field_validator("conf", mode="after")
    @classmethod
    def _safe_conf(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        return _without_refusals(value, spark_conf.refusal_of)


class ReconcileSettings(Section):
    """Landed data is proven from outside at these times, and a coming loss told so early."""

    cron: Cron = "30 * * * *"
    scrub_every: Duration = timedelta(days=7)
    scrub_budget: Size = 50 * 10**9
    """Bytes of landed files that one scrub reads at most; one batch is read in any case."""
    second_reader: Annotated[
        int | None,
        Field(gt=0, le=_MAX_INT),
        BeforeValidator(_records_or_off),
        PlainSerializer(lambda records: records or "off", when_used="json"),
        Accepted("a whole number of records above 0, or off"),
    ] = 100_000
    """Offsets that one reconcile has another Kafka client compare; None: it compares nothing, and
    no run's check does either."""
    warn_time_to_loss: Duration = timedelta(hours=6)
    payload_horizon: Duration | None = None
    """Equal payloads of one partition within this time are told; None: nobody looks for them."""
    fail_on: Annotated[
        tuple[Literal["SUSPECTED", "UNKNOWN", "PROVEN_DUP", "PROVEN_LOSS"], ...],
        Accepted("SUSPECTED, UNKNOWN, PROVEN_DUP, PROVEN_LOSS, in a list"),
        Field(strict=False),
    ] = ("SUSPECTED", "UNKNOWN", "PROVEN_DUP", "PROVEN_LOSS")
    """Verdicts on which a reconcile run in Airflow fails; the others are told in its report."""


LATE: Final = "LATE"
"""No verdict, but told like one: a window that is not complete in time."""
REQUEST: Final = "REQUEST"
"""Likewise: a request for a waiver that waits for somebody else's word."""


class Route(Section):
    """What a notifier is told of; all that is not said here."""

    verdict: Annotated[
        tuple[Literal["SUSPECTED", "UNKNOWN", "PROVEN_DUP", "PROVEN_LOSS", "LATE", "REQUEST"], ...],
        Accepted("SUSPECTED, UNKNOWN, PROVEN_DUP, PROVEN_LOSS, LATE, REQUEST, in a list"),
        Field(strict=False),
    ] = ("SUSPECTED", "UNKNOWN", "PROVEN_DUP", "PROVEN_LOSS", "LATE", "REQUEST")
    labels: Annotated[Pairs, Accepted("labels that a feed must have, each a name and a value")] = (
        Field(default_factory=dict)
    )


class NotifierSettings(Section):
    """A notifier of Airflow's, told what is new of the feed and what is over."""

    notifier: Annotated[
        str,
        Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$"),
        Accepted(
            "a notifier's class such as airflow.providers.smtp.notifications.smtp.SmtpNotifier"
        ),
    ]
    arguments: Annotated[
        Mapping[str, JsonValue], Accepted("the arguments of that class, each a name and a value")
    ] = Field(default_factory=dict)
    when: Route = Route()
    remind: Duration | None = None
    """What stands is told again so long after all of it was told; None: once is enough."""

    @field_validator("arguments", mode="after")
    @classmethod
    def _no_secret(cls, value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        if _carries_secret(value):
            raise _refused("it looks like a secret: name an Airflow connection that holds it")
        return value


def _carries_secret(value: object, key: str = "") -> bool:
    if isinstance(value, Mapping):
        return any(_carries_secret(each, str(name)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return any(_carries_secret(each, key) for each in value)
    return isinstance(value, str) and spark_conf.carries_secret(key, value)


class FeedFile(Section):
    """What every feed file says."""

    name: Annotated[
        str,
        Field(alias="feed"),
        # `reconcile_<feed>` is a DAG's id (at most 250), `dag_id=reconcile_<feed>` a directory of
        # logs (255). Lower case only, so that two names never differ by case alone.
        Field(pattern=r"^[a-z][a-z0-9_-]{0,199}$"),
        Accepted("1 to 200 of a-z, 0-9, '_', '-', beginning with a letter"),
    ]
    source: Reading
    schedule: Schedule
    plan: PlanLimits = PlanLimits()
    target: Target
    spark: SparkSettings = SparkSettings()
    reconcile: ReconcileSettings = ReconcileSettings()
    notify: Annotated[
        tuple[NotifierSettings, ...],
        Accepted("a list of notifiers, each with notifier, arguments, when and remind"),
        Field(strict=False),
    ] = ()
    complete_within: Duration | None = None
    """How long after its end a window may take to be complete; None: nobody waits for it."""
    labels: Annotated[Pairs, Accepted("labels, each a name and a value")] = Field(
        default_factory=dict
    )

    @field_validator("labels", mode="after")
    @classmethod
    def _safe_labels(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        return _without_refusals(value, refusal_of_label)

    @property
    @abstractmethod
    def reads(self) -> str:
        """The topic, or a pattern of topics."""

    @property
    def notifiers(self) -> tuple[NotifierSettings, ...]:
        """Those of `notify` that are told of a feed with these labels."""
        mine = self.labels.items()
        return tuple(each for each in self.notify if each.when.labels.items() <= mine)

    @property
    def windows(self) -> WindowSchedule | None:
        """The windows at whose ends records are cut; None where `plan.until` is now."""
        if self.plan.until == "now":
            return None
        return WindowSchedule(self.schedule.cron, self.schedule.timezone)


class Feed(FeedFile):
    """One feed, as its file says."""

    source: Source

    @property
    def reads(self) -> str:
        """The topic."""
        return self.source.topic
