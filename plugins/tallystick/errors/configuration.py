"""Errors of settings: a feed file, a connection or a window is missing or wrong."""

from __future__ import annotations

from collections.abc import Sequence

from tallystick.errors.ingestion import IngestionError


class ConfigurationError(IngestionError):
    """A setting is missing or wrong."""

    next_step = "Correct the setting and run again."

    setting: str
    value: object
    accepted: str
    where: str = ""

    def sentence(self) -> str:
        """In the words of the class, or the place, the setting, its value and what is accepted."""
        if self.said:
            return super().sentence()
        place = f"{self.where}: " if self.where else ""
        value = "missing" if self.value is None else repr(self.value)
        return f"{place}{self.setting} is {value}; accepted: {self.accepted}."


class FeedFileInvalid(ConfigurationError):
    """Feed files can't be used: every problem of every file, one line each."""

    next_step = "Correct the feed file, then run: tallystick feed check"

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("feed files", "with problems", "files without one")
        self.args = (tuple(problems),)
        self.problems = tuple(problems)

    def sentence(self) -> str:
        """The problems, each with file, line, key, value and what is accepted."""
        return "\n".join(self.problems)

    def __str__(self) -> str:
        return f"{self.describe()}\n{self.next_step}"


class FeedUnknown(ConfigurationError):
    """No feed bears this name."""

    next_step = "List the feeds: tallystick feed list"
    said = "there is no feed {value!r} in {where}; {accepted}."


class ConnectionMissing(ConfigurationError):
    """A connection that a feed names does not exist."""

    next_step = (
        "Create it in Airflow and set AIRFLOW_HOME as that Airflow has it, or set one of these"
        " variables."
    )
    said = "connection {setting!r} does not exist; looked for: {accepted}."


class SecretsExposed(ConfigurationError):
    """What Kafka's client needs would be shipped where anybody can read it, or can't be shipped;
    nothing was started.
    """

    next_step = (
        "Print the file (tallystick kafka-secrets FEED), place it on every node with mode 0600,"
        " name it in the Spark connection's extra kafka-secrets; or let Spark run on YARN."
    )

    def sentence(self) -> str:
        """The connection, and how the secrets would be read, or why they can't be shipped."""
        why = (
            f"with master {self.value} in client mode, anybody who reaches the driver's port can"
            " read Kafka's password or key"
        )
        if str(self.value).startswith("sc://"):
            why = (
                "Kafka's client needs a file with authorities, password or key, and nothing can be"
                f" shipped to the server {self.value}, which runs already"
            )
        return f"{self.where}: {why}. {self.setting} is missing; accepted: {self.accepted}."


class WindowIncomplete(ConfigurationError):
    """A run has only one end of its window."""

    next_step = "Give both ends of the window, or none."


class RunParameterUnknown(ConfigurationError):
    """A run was given a parameter that its form does not have; nothing was done."""

    next_step = "Nothing was done. Correct the key, then trigger the run again."
    said = "{where}: unknown parameter {setting!r}; {accepted}."
