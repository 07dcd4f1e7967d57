"""The route that Prometheus reads: the ledger's figures, a few lines for each feed.

A Prometheus server has no log-in of Airflow's, so this route has a token of its own: it is closed
without one, and who sends it sees the figures of all feeds, and nothing else.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, TypeAlias

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from tallystick.domain.verdicts import Verdict
from tallystick.errors import IngestionError
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.metrics import FeedFigures
from tallystick.ledger.overview import FeedHead
from tallystick.web.routes import Desk

log = logging.getLogger(__name__)

metrics = APIRouter(include_in_schema=False)
TokenOf = Callable[[], str | None]
_FEED = ("feed",)
_Value: TypeAlias = Callable[[FeedHead], float | datetime | None]
_REMEMBERED_SECONDS: Final = 60.0
_SHORTEST_TOKEN: Final = 16


class MetricsToken:
    """The token as it is set now, looked up once a minute at most."""

    def __init__(self, look_up: TokenOf) -> None:
        self._look_up = look_up
        self._token: str | None = None
        self._known_until = 0.0

    def current(self) -> str | None:
        """None while none can be read, or one that is too short to keep anybody out."""
        now = time.monotonic()
        if now >= self._known_until:
            self._token, self._known_until = self._looked_up(), now + _REMEMBERED_SECONDS
        return self._token

    def _looked_up(self) -> str | None:
        try:
            found = self._look_up()
        except IngestionError as error:
            log.warning("Tallystick's metrics are closed: %s", error.describe())
            return None
        if found and len(found) < _SHORTEST_TOKEN:
            log.warning(
                "Tallystick's metrics are closed: the token has fewer than %d characters.",
                _SHORTEST_TOKEN,
            )
            return None
        return found or None


@metrics.get("/metrics")
async def read(request: Request, desk: Desk) -> Response:
    """OpenMetrics for who sends the token; as if it were not there, where no token is set."""
    token = await run_in_threadpool(request.app.state.metrics_token.current)
    if token is None:
        return _text("There is no such page.", 404)
    if not _is_sent(request.headers.get("Authorization", ""), token):
        refusal = _text("The metrics need their token: Authorization: Bearer ...", 401)
        refusal.headers["WWW-Authenticate"] = "Bearer"
        return refusal
    accept = request.headers.get("Accept", "")
    try:
        body, content_type = await desk.ask(
            partial(exposition, now=datetime.now(UTC), accept=accept)
        )
    except IngestionError as error:  # an answer never says where the ledger is
        log.warning("Tallystick's metrics: %s", error.describe())
        return _text("The ledger does not answer.", 503)
    return Response(body, media_type=content_type)


def _is_sent(header: str, token: str) -> bool:
    """True if the header holds the token; takes as long wherever two of one length differ."""
    scheme, _, sent = header.partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(sent.encode(), token.encode())


def _text(words: str, status: int) -> Response:
    return Response(f"{words}\n", status, media_type="text/plain")


def exposition(ledger: Ledger, now: datetime, accept: str) -> tuple[bytes, str]:
    """The figures in the form that the reader accepts, and its content type."""
    registry = CollectorRegistry(auto_describe=False)
    heads = ledger.feed_heads(most_runs=0)
    registry.register(_Figures(heads, ledger.figures(), now))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Figures(Collector):
    """The figures of one moment."""

    def __init__(
        self, feeds: Sequence[FeedHead], figures: Sequence[FeedFigures], now: datetime
    ) -> None:
        self._feeds = feeds
        self._figures = figures
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Every metric that docs/metrics.md names."""
        yield self._info()
        yield self._verdict()
        of_feeds: tuple[tuple[str, str, _Value], ...] = (
            ("lag_offsets", "Offsets that Kafka has and that are not landed.",
             lambda each: each.lag),
            ("time_to_loss_seconds", "Least time until retention may take some of the lag.",
             lambda each: each.seconds_to_loss(self._now)),
            ("partitions", "Partitions that were planned.", lambda each: each.partitions),
            ("complete_up_to_timestamp_seconds", "Everything before it is landed.",
             lambda each: each.complete_up_to),
            ("look_timestamp_seconds", "When Kafka was asked last.", lambda each: each.looked_at),
            ("report_timestamp_seconds", "When the newest report was taken.",
             lambda each: each.report.taken_at if each.report else None),
        )  # fmt: skip
        for name, words, value in of_feeds:
            yield self._of_feeds(name, words, value)
        yield from self._findings()
        yield from self._totals()
        yield from self._newest()

    def _info(self) -> Metric:
        """What the feeds' files say of them; Prometheus takes an empty label for none."""
        said = {each.feed: each.described.labels for each in self._feeds if each.described}
        names = sorted({name for labels in said.values() for name in labels})
        family = _gauge("info", "1, with the labels of the feed's file.", *names)
        for feed, labels in said.items():
            family.add_metric([feed, *(labels.get(name, "") for name in names)], 1)
        return family

    def _verdict(self) -> Metric:
        family = _gauge("verdict", "1 for the verdict of the feed, 0 for all others.", "verdict")
        for each in self._feeds:
            for verdict in Verdict:
                family.add_metric([each.feed, verdict.value], float(each.verdict is verdict))
        return family

    def _of_feeds(self, name: str, words: str, value: _Value) -> Metric:
        """One number of each feed; no line where it is not known."""
        family = _gauge(name, words)
        for each in self._feeds:
            found = value(each)
            if isinstance(found, datetime):
                family.add_metric([each.feed], found.timestamp())
            elif found is not None:
                family.add_metric([each.feed], found)
        return family

    def _findings(self) -> Iterator[Metric]:
        family = _gauge("findings", "Findings that stand.", "code", "verdict")
        for each in self._figures:
            for (code, verdict), count in each.findings.items():
                family.add_metric([each.feed, code, verdict.value], count)
        yield family

    def _totals(self) -> Iterator[Metric]:
        batches = _gauge("batches", "Batches, by state.", "state")
        rows = _counter("committed_rows", "Rows that were committed.")
        length = _counter("committed_bytes", "Bytes of files that were committed.")
        for each in self._figures:
            for state, count in each.batches.items():
                batches.add_metric([each.feed, state.value], count)
            rows.add_metric([each.feed], each.rows)
            length.add_metric([each.feed], each.length_bytes)
        yield from (batches, rows, length)

    def _newest(self) -> Iterator[Metric]:
        steps = _gauge("newest_batch_step_seconds", "What each step of it took.", "step")
        length = _gauge("newest_batch_bytes", "Bytes of its files.")
        rows = _gauge("newest_batch_rows", "Its rows.")
        for each in self._figures:
            newest = each.newest
            if newest is None:
                continue
            for step in ("wait", "land", "commit", "publish"):
                steps.add_metric([each.feed, step], getattr(newest, f"{step}_seconds"))
            length.add_metric([each.feed], newest.length_bytes)
            rows.add_metric([each.feed], newest.rows)
        yield from (steps, length, rows)


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"tallystick_feed_{name}", words, labels=[*_FEED, *labels])


def _counter(name: str, words: str) -> CounterMetricFamily:
    return CounterMetricFamily(f"tallystick_feed_{name}", words, labels=_FEED)
