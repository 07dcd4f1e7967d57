"""`feed list|check|show|retire`, `kafka-secrets`: what feed files and connections say.

Only `feed check` and `feed retire` ask a service: the ledger, for what the feeds have landed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, Final

import typer
import yaml

from tallystick.cli.answers import (
    CLEAN,
    WRONG_USE,
    Answer,
    Block,
    Table,
    WrittenAnswer,
    deliver,
)
from tallystick.cli.options import FeedArgument, JsonOption
from tallystick.cli.stage import Stage, home_for_airflow, stage_of
from tallystick.domain.identities import FeedName
from tallystick.domain.planning.feed_edits import FeedEdit
from tallystick.errors import ConfigurationError, ConnectionMissing, FeedUnknown, LedgerError
from tallystick.report.documents import Document, Part
from tallystick.report.wording import counted
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import FeedFile
from tallystick.settings.feeds import (
    feed_file,
    feed_names,
    file_as_written,
    inherited,
    load_feed,
    read_feeds,
    shown_path,
)
from tallystick.settings.group_names import group_of
from tallystick.settings.problems import FeedProblem
from tallystick.settings.yaml_lines import KeyPath
from tallystick.workflows.planning.comparing_file import edits_of

_SECRET: Final = (
    "Secret: this is Kafka's password or key in clear. Write it to a file of mode 0600 on every"
    " node of Spark, and on the machine that starts the applications; keep it out of logs."
)

app = typer.Typer(no_args_is_help=True, help="What the feed files say.")


class FeedPart(Part):
    """One feed in a few words."""

    feed: str
    file: str
    topic: str
    cron: str
    timezone: str
    until: str
    root: str


class FeedListDocument(Document):
    """`feed list`."""

    format: str = "tallystick-feed-list-1"
    folder: str
    feeds: Sequence[FeedPart]
    problems: Sequence[FeedProblem]


class FeedCheckDocument(Document):
    """`feed check`."""

    format: str = "tallystick-feed-check-1"
    folder: str
    feeds: Sequence[str]
    problems: Sequence[FeedProblem]
    warnings: Sequence[str]
    """What the ledger has otherwise, and that is no problem of the file alone."""


class FeedShowDocument(Document):
    """`feed show`: the feed's file with every default written out."""

    format: str = "tallystick-feed-show-1"
    file: str
    feed: Mapping[str, Any]
    inherited: Mapping[str, str]
    """Where keys stand that the file has from `_defaults.yaml`."""


class FeedRetireDocument(Document):
    """`feed retire`: with what the feed has ended."""

    format: str = "tallystick-feed-retire-1"
    feed: str
    commits: int
    digest: str | None
    """Of the last link of its chain."""


@app.command("list")
def list_feeds(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the feeds. Exit 2 if a file of the folder is wrong."""
    deliver(lambda: _listed(stage_of(context)), as_json=as_json)


@app.command("check")
def check_feeds(context: typer.Context, as_json: JsonOption = False) -> None:
    """Check all feed files and tell every problem: file, line, key, value, accepted values."""
    deliver(lambda: _checked(stage_of(context)), as_json=as_json)


@app.command("show")
def show_feed(context: typer.Context, feed: FeedArgument, as_json: JsonOption = False) -> None:
    """Show one feed with every default written out, as a feed file."""
    deliver(lambda: _shown(stage_of(context), feed), as_json=as_json)


@app.command("retire")
def retire_feed(
    context: typer.Context,
    feed: FeedArgument,
    reason: Annotated[str, typer.Option(help="Why it has ended.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who says so.")],
    as_json: JsonOption = False,
) -> None:
    """End a feed whose file is gone: it is never planned again, and listed no more."""
    deliver(lambda: _retired(stage_of(context), feed, reason, by), as_json=as_json)


def kafka_secrets(context: typer.Context, feed: FeedArgument) -> None:
    """Print the file with the feed's Kafka password and keys, for Spark's nodes. SECRET."""
    deliver(lambda: _secrets(stage_of(context), feed), as_json=False, is_verbatim=True)


def _listed(stage: Stage) -> Answer:
    found = read_feeds(stage.folder)
    feeds = [
        FeedPart(
            feed=feed.name,
            file=shown_path(feed_file(stage.folder, feed.name)),
            topic=feed.reads,
            cron=feed.schedule.cron,
            timezone=feed.schedule.timezone,
            until=feed.plan.until,
            root=feed.target.root,
        )
        for feed in (*found.feeds.values(), *found.groups.values())
    ]
    document = FeedListDocument(
        folder=shown_path(stage.folder),
        feeds=feeds,
        problems=found.problems,
    )
    rows = [
        [each.feed, each.topic, f"{each.cron} {each.timezone}", each.until, each.root, each.file]
        for each in feeds
    ]
    headers = ("feed", "topic", "schedule", "until", "root", "file")
    nothing = f"{document.folder} holds no feed."
    blocks: list[Block] = [Table(headers, rows)] if rows else [nothing]
    notes = [str(each) for each in found.problems]
    return Answer(document, blocks, WRONG_USE if notes else CLEAN, notes)


def _checked(stage: Stage) -> Answer:
    from tallystick.alerts.notifiers import notifier_problems

    edits, notes = _edits(stage)

    def further(feed: FeedFile) -> Iterator[tuple[KeyPath, str, str]]:
        yield from notifier_problems(feed)
        for each in edits.get(feed.name, ()):
            if each.is_refused:
                yield each.key, "is not accepted", each.words

    with home_for_airflow():
        found = read_feeds(stage.folder, further)
    right = {**found.feeds, **found.groups}
    told = [(name, each) for name in right for each in edits.get(name, ())]
    document = FeedCheckDocument(
        folder=shown_path(stage.folder),
        feeds=list(right),
        problems=found.problems,
        warnings=[f"feed {name}: {each.words}" for name, each in told],
    )
    blocks: list[Block] = [str(each) for each in found.problems]
    blocks += [f"warning: {each}" for each in document.warnings]
    blocks.append(
        f"{document.folder}: {counted('feed', len(right))} in order,"
        f" {counted('problem', len(found.problems))}."
    )
    notes += dict.fromkeys(unused_settings(stage.environ, *right.values()))
    return Answer(document, blocks, WRONG_USE if found.problems else CLEAN, notes)


def _edits(stage: Stage) -> tuple[Mapping[str, Sequence[FeedEdit]], list[str]]:
    """Returns where feeds' files differ from the ledger; and why the ledger was not asked.

    Files are checked where there is no ledger, too.
    """
    read, declared = read_feeds(stage.folder), feed_names(stage.folder)
    try:
        with stage.ledger() as ledger:
            found = {name: edits_of(ledger, each, declared) for name, each in read.feeds.items()}
            for each in ledger.feed_heads(most_runs=0) if read.groups else ():
                if group := read.groups.get(group_of(each.feed)):
                    with suppress(FeedUnknown):  # its topic matches no more: the next run says so
                        edits = edits_of(ledger, group.feed(each.feed), declared)
                        found.setdefault(group.name, []).extend(edits)
            return found, []
    except ConnectionMissing as error:
        return {}, [f"Nothing was compared with the ledger: there is no {error.setting}."]
    except LedgerError as error:
        return {}, [f"Nothing was compared with the ledger: {error.describe()}"]


def unused_settings(environ: Mapping[str, str], *feeds: FeedFile) -> Iterator[str]:
    """Warnings of Kafka connections of the environment that say more than is used."""
    # Opens certificates, so it brings a library that the other commands here don't wait for.
    from tallystick.settings.kafka_connection import KafkaConnection

    for feed in feeds:
        with suppress(ConfigurationError):  # who opens it tells what is wrong with it
            kafka = KafkaConnection.of(connection_in(environ, feed.source.connection))
            if kafka.unused:
                names = ", ".join(kafka.unused)
                yield f"warning: connection {feed.source.connection}: {names}: not used here."


def _shown(stage: Stage, name: str) -> Answer:
    is_file = name in feed_names(stage.folder)
    feed = file_as_written(stage.folder, name) if is_file else load_feed(stage.folder, name)
    file = shown_path(feed_file(stage.folder, name))
    written = feed.model_dump(mode="json", by_alias=True)
    text = yaml.safe_dump(written, sort_keys=False, allow_unicode=True)
    document = FeedShowDocument(file=file, feed=written, inherited=inherited(stage.folder, name))
    places = [f"# {key}: {place}" for key, place in document.inherited.items()]
    return Answer(document, ["\n".join([f"# {file}", *places]), text.rstrip()])


def _retired(stage: Stage, name: str, reason: str, by: str) -> Answer:
    if name in feed_names(stage.folder):
        told = "a feed without a file: take its file away first, or its DAGs would go on"
        raise ConfigurationError("FEED", name, told)
    for option, text in (("--reason", reason), ("--by", by)):
        if not text.strip():
            raise ConfigurationError(option, text, "some words")
    with stage.ledger_of_feed(name) as (ledger, _):
        found = ledger.retire(FeedName(name), reason=reason, by=by)
    digest = found.digest.hex() if found.digest else None
    document = FeedRetireDocument(feed=name, commits=found.commits, digest=digest)
    proof = f", the last one's digest is {digest}" if digest else ""
    lines = [
        f"Feed {name} is retired after {counted('commit', found.commits)}{proof}.",
        f"Its reports and findings stay: tallystick report {name}",
    ]
    return Answer(document, lines)


def _secrets(stage: Stage, name: str) -> WrittenAnswer:
    text = stage.secrets_file(stage.feed(name))
    note = _SECRET if text else f"Spark needs no file to reach the Kafka of feed {name}."
    return WrittenAnswer(text, notes=[note])
