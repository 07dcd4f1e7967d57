"""A session has our settings for the length of the work, and nobody else's in the meantime."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.spark.session_settings import SessionChanged, session_settings

WANTED = {"a": "1", "b": None, "c": "3", "d": None}
BEFORE = {"b": "theirs", "c": "3", "z": "9"}


class Session:
    """The part of Spark that holds settings, and how often it is asked to change one."""

    def __init__(self) -> None:
        self.conf, self.values, self.changes = self, dict(BEFORE), 0

    @property
    def getAll(self) -> dict[str, str]:
        return dict(self.values)

    def set(self, name: str, value: str) -> None:
        self.changes += 1
        self.values[name] = value

    def unset(self, name: str) -> None:
        self.changes += 1
        self.values.pop(name, None)


def settings(session: Session) -> Any:
    spark: Any = session
    return session_settings(spark, WANTED)


def test_settings_hold_for_the_length_of_the_work() -> None:
    session = Session()

    with settings(session):
        assert session.values == {"a": "1", "c": "3", "z": "9"}

    assert session.values == BEFORE
    assert session.changes == 4, "what is as wanted is not set again: each costs a request"


class OldSession(Session):
    """Of Spark 3.5, which is asked for one setting at a time."""

    @property
    def getAll(self) -> dict[str, str]:
        raise AttributeError

    def get(self, name: str, default: str | None) -> str | None:
        return self.values.get(name, default)


def test_spark_3_5_is_asked_by_name() -> None:
    session = OldSession()

    with settings(session):
        assert session.values == {"a": "1", "c": "3", "z": "9"}
    assert session.values == BEFORE

    with pytest.raises(SessionChanged, match="has set a meanwhile"), settings(session):
        session.set("a", "2")


@pytest.mark.parametrize(("name", "value"), [("a", "2"), ("b", "theirs"), ("d", "any")])
def test_work_in_a_session_that_somebody_has_changed_is_not_trusted(name: str, value: str) -> None:
    session = Session()

    with pytest.raises(SessionChanged, match=f"has set {name} meanwhile"), settings(session):
        session.set(name, value)


def test_a_setting_that_is_not_ours_may_change() -> None:
    session = Session()

    with settings(session):
        session.set("z", "8")

    assert session.values == BEFORE | {"z": "8"}


def test_what_the_work_raises_is_told() -> None:
    session = Session()

    def work() -> None:
        with settings(session):
            session.set("a", "2")
            raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        work()

    assert session.values == BEFORE
