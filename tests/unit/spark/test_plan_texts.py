"""A plan that a Spark Connect server can't read, because its file system is unknown there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tallystick.errors import ConfigurationError
from tallystick.spark.connect_runner import _text

URI = "hdfs://nowhere.invalid:8020/plan.json"


class Blind:
    """A session whose reads fail with these words."""

    def __init__(self, words: str) -> None:
        self.read, self._words = self, words

    def text(self, uri: str, *, wholetext: bool) -> Any:
        raise RuntimeError(self._words)


def text_by(words: str) -> str:
    return _text(cast("Any", Blind(words)), URI)


def test_the_error_says_what_is_accepted_and_the_log_what_spark_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ConfigurationError) as told:
        text_by("java.net.UnknownHostException: nowhere.invalid")

    assert told.value.accepted == "one that the Spark Connect server knows and reaches"
    assert "UnknownHostException" in caplog.text


def test_a_plan_that_is_gone_is_no_setting() -> None:
    with pytest.raises(RuntimeError, match="PATH_NOT_FOUND"):
        text_by("PATH_NOT_FOUND")
