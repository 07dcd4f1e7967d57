"""News of a feed in words: a subject, and a block for each trouble, plain and as HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Final
from urllib.parse import quote

from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.report.news import News
from tallystick.domain.report.troubles import Trouble, named_findings, troubles_of
from tallystick.domain.rules.waivers import WaiverRequest, asked_at_once
from tallystick.domain.verdicts import FindingState
from tallystick.report.safe_text import visible, visible_lines
from tallystick.report.wording import concern_text, extent_text, in_short, with_capital

_MOST_TOLD: Final = 50


@dataclass(frozen=True, slots=True)
class Block:
    """What is told of one thing."""

    head: str
    lines: Sequence[str] = ()
    link: str = ""
    """Where more is told; empty where nothing is."""


@dataclass(frozen=True, slots=True)
class NewsWords:
    """A notifier's templates may use these, as `news`."""

    feed: str
    subject: str
    """One line."""
    blocks: Sequence[Block]
    link: str
    """Where Tallystick's page shows the feed."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The feed's own; the runbook's is a link."""

    @property
    def text(self) -> str:
        """Everything, a block for each thing, parted by empty lines."""
        return "\n\n".join(
            "\n".join(visible_lines(line) for line in (each.head, *each.lines, each.link) if line)
            for each in self.blocks
        )

    @property
    def html(self) -> str:
        """The same, and where to read on, escaped; lines are as wide as the reader has them."""
        told = "".join(
            f"<p><strong>{_escaped(each.head)}</strong>"
            + "".join(f"<br>{_escaped(line)}" for line in each.lines)
            + (f"<br>{_linked(each.link)}" if each.link else "")
            + "</p>"
            for each in self.blocks
        )
        links = filter(None, (self.link, self.labels.get("runbook")))
        return f"{told}<p>{'<br>'.join(map(_linked, links))}</p>"


def words_of(feed: str, news: News, pages: str, labels: Mapping[str, str]) -> NewsWords:
    """The news in words: what is new, is over, still stands; then the feed's labels.

    `pages` is the address of ours.
    """
    heads, blocks = [], []
    if news.verdict is not news.verdict_before and news.verdict and news.verdict_before:
        heads.append(f"{news.verdict.value} (was {news.verdict_before.value})")
        blocks.append(
            Block(f"The verdict is {news.verdict.value}; it was {news.verdict_before.value}.")
        )
    if news.late:
        heads.append("not complete in time")
        blocks.append(
            Block(f"The window that ended at {_second(news.late)} is not complete in time.")
        )
    opened, over = troubles_of(news.opened), troubles_of(news.over)
    if opened:
        heads.append(f"{len(opened)} new")
        blocks += _some("new", [_standing("New", each, pages) for each in opened])
    if news.asked:
        asked = list(asked_at_once(news.asked))
        heads.append(f"{len(asked)} to approve")
        blocks += _some("to approve", [_waiting(each, pages) for each in asked])
    if news.late_no_more:
        heads.append("complete again")
        first = _second(news.late_no_more)
        blocks.append(Block(f"No window is late any more; {first} was the first one."))
    if over:
        heads.append(f"{len(over)} over")
        blocks += _some("over", [_over(each, pages) for each in over])
    if news.still_late:
        heads.append("still not complete")
        late = _second(news.still_late)
        blocks.append(Block(f"The window that ended at {late} is still not complete."))
    still = troubles_of(news.still)
    if still:
        heads.append(f"{len(still)} still open")
        blocks += _some("still open", [_standing("Still open", each, pages) for each in still])
    if labels:
        blocks.append(Block("Labels", [f"{name}: {value}" for name, value in labels.items()]))
    link = f"{pages}/feeds/{quote(feed, safe='')}"
    return NewsWords(feed, f"Tallystick {feed}: {', '.join(heads)}", blocks, link, labels)


def _some(head: str, blocks: Sequence[Block]) -> list[Block]:
    left = len(blocks) - _MOST_TOLD
    return [*blocks[:_MOST_TOLD], *([Block(f"{head}: and {left} more")] if left > 0 else [])]


def _standing(head: str, trouble: Trouble, pages: str) -> Block:
    number = trouble.number_to_act_on or trouble.worst.number
    causes = [with_capital(in_short(each.cause)) for each in trouble.by_rule]
    steps = [f"Next: {in_short(each)}" for each in trouble.next_steps]
    return Block(
        f"{head}: {trouble.verdict.value}, {_rules(trouble)}, {extent_text(trouble)}",
        [_one_line(each) for each in (concern_text(trouble), *causes, *steps) if each],
        _page_of(pages, number),
    )


def _over(trouble: Trouble, pages: str) -> Block:
    endings = dict.fromkeys(_ending(each) for each in trouble.findings)
    return Block(
        f"Over: {trouble.worst.verdict.value}, {_rules(trouble)}, {extent_text(trouble)}",
        [_one_line(each) for each in list(endings)[:_MOST_TOLD]],
        _page_of(pages, trouble.worst.number),
    )


def _waiting(asked: Sequence[WaiverRequest], pages: str) -> Block:
    wish = asked[0].wish
    numbers = sorted(each.wish.finding_id for each in asked)
    return Block(
        f"To approve, by somebody other than {wish.asked_by}: {named_findings(numbers)}",
        [
            f"Asked to be accepted until {_second(wish.expires_at)}, because:"
            f" {_one_line(wish.reason)}"
        ],
        _page_of(pages, numbers[0]),
    )


def _rules(trouble: Trouble) -> str:
    named = ", ".join(f"{each.code} {each.name}" for each in trouble.by_rule)
    return f"{named} ({named_findings(trouble.numbers)})"


def _ending(part: FindingPart) -> str:
    match part.state:
        case FindingState.WAIVED:
            until = part.waiver.expires_at if part.waiver else None
            return "Two people accept it" + (f" until {_second(until)}." if until else ".")
        case FindingState.SUPERSEDED:
            return "It has another verdict now."
        case _:
            return part.closed_by or "It stands no more."


def _page_of(pages: str, number: int | None) -> str:
    return f"{pages}/findings/{number}" if number else ""


def _escaped(text: str) -> str:
    return escape(visible(text))


def _linked(link: str) -> str:
    return f'<a href="{escape(link)}">{escape(link)}</a>'


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _second(instant: datetime) -> str:
    return instant.isoformat(timespec="seconds")
