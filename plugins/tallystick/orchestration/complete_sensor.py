"""The sensor that waits for proof: until everything before an instant is landed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NoReturn

from airflow.sdk import BaseSensorOperator, PokeReturnValue

from tallystick.domain.identities import FeedName
from tallystick.errors import ConfigurationError, IngestionError
from tallystick.orchestration.airflow_releases import AirflowFailException, AirflowSensorTimeout
from tallystick.orchestration.connections import open_ledger
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.run_context import Context, instant_of
from tallystick.report.wording import by_text, instant_text, landed_text, late_text
from tallystick.settings.feeds import feed_file, feeds_folder

if TYPE_CHECKING:
    from tallystick.ledger.ledger import Ledger


_MOST_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """The ledger proves this of a feed, beside the instant that was asked for."""

    is_proven: bool
    complete_up_to: datetime | None
    words: str
    """What that means, with all that two people have accepted; and what holds it back."""

    def __str__(self) -> str:
        return self.words


def ask(ledger: Ledger, feed: str, instant: datetime) -> Answer:
    """Says if everything before the instant is proven; raises what the ledger raises."""
    # The workflow's libraries take a while, which a DAG file must not wait for.
    from tallystick.domain.report.completeness import Proof
    from tallystick.domain.report.finding_part import stored_part
    from tallystick.domain.report.held_back import held_back_by
    from tallystick.workflows.reconciling.reporting import feed_completeness

    found = feed_completeness(ledger, FeedName(feed), instant)
    up_to, is_proven = found.proven.up_to, found.proven.proof_of(instant) is Proof.PROVEN
    words = ["not known to be complete."]
    if up_to is not None:
        landed = landed_text([stored_part(each) for each in found.accepted])
        heard = instant_text(found.storage_heard_at) if found.storage_heard_at else "never"
        reach = f"complete up to {instant_text(up_to)}{by_text(found.proven.by)}: {landed}"
        words = [f"{reach}; storage was heard last: {heard}."]
    if found.late:
        words.append(late_text(found.late))
    if not is_proven:
        heads = ledger.feed_heads(FeedName(feed), most_runs=0)
        topic = heads[0].topic if heads else feed
        words += held_back_by(topic, found.proven, instant, found.numbers)[:_MOST_TOLD]
    return Answer(is_proven, up_to, " ".join(words))


class FeedCompleteSensor(BaseSensorOperator):
    """Succeeds once the feed is complete up to `at`, and gives the instant that it is complete to.

    `at` is an instant or a template; unless given, the end of the run's data interval. A feed that
    is known to be short is waited for, too: a repair may mend it. With `within` the wait ends that
    long after `at`, else after the sensor's own `timeout`. While it waits, it is deferred and
    holds no worker's slot.
    """

    template_fields: Sequence[str] = ("feed", "at")

    def __init__(
        self,
        feed: str,
        *,
        at: datetime | str = "{{ data_interval_end }}",
        within: timedelta | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not isinstance(within, timedelta | None):
            accepted = "a datetime.timedelta, as timedelta(hours=2)"
            raise ConfigurationError("within", within, accepted, where=f"feed {feed}")
        self.feed = feed
        self.at = at
        self.within = within

    def execute(self, context: Context) -> Any:
        """The instant up to which the feed is complete, as ISO 8601."""
        with in_airflow_terms():
            feed_file(feeds_folder(os.environ), self.feed)  # a mistyped name would wait for ever
            instant = instant_of(self.feed, "at", self.at)
        if self.within is not None:
            self.timeout = max(0.0, (instant + self.within - datetime.now(UTC)).total_seconds())
        found = self.poke(context)
        return found.xcom_value if found.is_done else self._wait()

    def poke(self, context: Context) -> PokeReturnValue:
        """Says if the feed is complete by now; no, where the ledger does not answer."""
        instant = instant_of(self.feed, "at", self.at)
        try:
            with open_ledger() as ledger:
                answer = ask(ledger, self.feed, instant)
        except IngestionError as error:
            if not error.retry:
                raise AirflowFailException(str(error)) from error
            self.log.warning("Feed %s is asked again: %s", self.feed, error.describe())
            return PokeReturnValue(is_done=False)
        self.log.info("Feed %s, asked for %s: %s", self.feed, instant_text(instant), answer)
        up_to = answer.complete_up_to
        return PokeReturnValue(answer.is_proven, up_to.isoformat() if up_to else None)

    def execute_complete(self, context: Context, event: Mapping[str, Any] | None = None) -> str:
        """Returns what the trigger told; raises AirflowFailException for an error that stays."""
        told = event or {"error": f"Feed {self.feed}: the trigger has said nothing."}
        if "error" in told:
            raise AirflowFailException(told["error"])
        self.log.info("Feed %s: %s", self.feed, told["said"])
        return str(told["complete_up_to"])

    def _wait(self) -> NoReturn:
        if self.timeout <= 0:
            raise AirflowSensorTimeout(f"Feed {self.feed} is not complete up to {self.at} in time.")
        from tallystick.orchestration.complete_trigger import FeedCompleteTrigger

        self.defer(
            trigger=FeedCompleteTrigger(
                self.feed, instant_of(self.feed, "at", self.at).isoformat(), self.poke_interval
            ),
            method_name="execute_complete",
            timeout=timedelta(seconds=self.timeout),
        )
        raise AssertionError("a deferred task goes on elsewhere")
