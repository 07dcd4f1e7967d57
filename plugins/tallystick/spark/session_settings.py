"""Session settings for the length of one piece of work; what a session had before is put back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session_settings(spark: SparkSession, wanted: Mapping[str, str | None]) -> Iterator[None]:
    """The session with these settings; None means the setting's own default."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    _apply(spark, wanted)
    try:
        yield
    finally:
        _apply(spark, before)


def _apply(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
