"""Errors of Spark applications."""

from __future__ import annotations

from tallystick.errors.ingestion import IngestionError


class SparkError(IngestionError):
    """Spark could not do its part."""


class ApplicationFailed(SparkError):
    """A Spark application ended with an error."""

    work = "batch"
    next_step = "Read the Spark log above. Nothing was committed; the next attempt starts anew."
    retry = True

    def __init__(self, batch: str, application: str, reason: str) -> None:
        super().__init__(batch, application, reason)

    def sentence(self) -> str:
        """The batch, the application, its last words."""
        what, application, reason = self.args
        return f"{self.work} {what}: Spark application {application} failed: {reason}."


class ScrubFailed(ApplicationFailed):
    """The Spark application that reads landed files in full ended with an error."""

    work = "scrub"
    next_step = "Read the Spark log above. Nothing was changed; what was not read is still due."
