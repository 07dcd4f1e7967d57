"""A plan that a Spark Connect server can't read, because its file system is unknown there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tallystick.spark.connect_server import _sees

URI = "hdfs://nowhere.invalid:8020/plan.json"


class Blind:
    """A session whose reads fail with these words."""

    def __init__(self, words: str) -> None:
        self.read, self._words = self, words

    def text(self, uri: str) -> Any:
        raise RuntimeError(self._words)


def is_seen(words: str) -> bool:
    return _sees(cast("Any", Blind(words)), URI)


def test_a_file_system_that_is_unknown_there_is_no_failure_and_the_log_says_what_spark_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert not is_seen("java.net.UnknownHostException: nowhere.invalid")

    assert "UnknownHostException" in caplog.text


def test_a_plan_that_is_gone_is_no_setting() -> None:
    with pytest.raises(RuntimeError, match="PATH_NOT_FOUND"):
        is_seen("PATH_NOT_FOUND")
