"""News of a feed in words: a line for a subject, and a text, plain and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Final

from tallystick.domain.report.finding_part import stored_part
from tallystick.domain.report.news import News
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import FindingState
from tallystick.report.wording import place_text

_MOST_TOLD: Final = 50


@dataclass(frozen=True, slots=True)
class NewsWords:
    """A notifier's templates may use these, as `news`."""

    feed: str
    subject: str
    """One line."""
    text: str
    link: str
    """Where Tallystick's page shows the feed."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The feed's own; the runbook's is a link."""

    @property
    def html(self) -> str:
        """The text, and where to read on, escaped."""
        links = (escape(each) for each in (self.link, self.labels.get("runbook")) if each)
        read_on = "<br>".join(f'<a href="{each}">{each}</a>' for each in links)
        return f"<pre>{escape(self.text)}</pre><p>{read_on}</p>"


def words_of(feed: str, news: News, link: str, labels: Mapping[str, str]) -> NewsWords:
    """The news in words: what is new, what is over, what still stands; then the feed's labels."""
    heads, lines = [], []
    if news.verdict is not news.verdict_before and news.verdict and news.verdict_before:
        heads.append(f"{news.verdict.value} (was {news.verdict_before.value})")
        lines.append(f"The verdict is {news.verdict.value}; it was {news.verdict_before.value}.")
    if news.late:
        heads.append("not complete in time")
        lines.append(f"The window that ended at {_second(news.late)} is not complete in time.")
    if news.opened:
        heads.append(f"{len(news.opened)} new")
        lines += _some("new", [(each, str(each.finding)) for each in news.opened])
    if news.late_no_more:
        heads.append("complete again")
        lines.append(f"No window is late any more; {_second(news.late_no_more)} was the first one.")
    if news.over:
        heads.append(f"{len(news.over)} over")
        lines += _some("over", [(each, _ending(each)) for each in news.over])
    if news.still_late:
        heads.append("still not complete")
        lines.append(f"The window that ended at {_second(news.still_late)} is still not complete.")
    if news.still:
        heads.append(f"{len(news.still)} still open")
        lines += _some("still", [(each, str(each.finding)) for each in news.still])
    lines += [f"{name}: {value}" for name, value in labels.items()]
    subject = f"Tallystick {feed}: {', '.join(heads)}"
    return NewsWords(feed, subject, "\n".join(lines), link, labels)


def _some(head: str, said: Sequence[tuple[StoredFinding, str]]) -> list[str]:
    told = [f"{head}: finding {each.finding_id}: {' '.join(words.split())}" for each, words in said]
    left = len(told) - _MOST_TOLD
    return told if left <= 0 else [*told[:_MOST_TOLD], f"{head}: and {left} more"]


def _ending(stored: StoredFinding) -> str:
    match stored.state:
        case FindingState.WAIVED:
            until = stored.waiver.expires_at if stored.waiver else None
            how = "two people accept it" + (f" until {_second(until)}" if until else "")
        case FindingState.SUPERSEDED:
            how = "it has another verdict now"
        case _:
            how = stored.closed_by or "it stands no more"
    found = stored_part(stored)
    return f"{place_text(found)} {found.code} {found.verdict.value}: {how}"


def _second(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
