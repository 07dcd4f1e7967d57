"""A feed's file that was edited: plan, landing, repair and reconcile say the same of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.errors import ConfigurationError
from tallystick.settings.feed import Feed
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.comparing_file import in_file
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

RUN = Owner("run")
COMMANDS: dict[str, Callable[[Services], object]] = {
    "plan": lambda services: dry_run(services, None),
    "land": lambda services: land_feed(services, None, RUN),
    "reconcile": reconcile,
    "repair": lambda services: repair_feed(services, (), RUN),
    "dry repair": lambda services: dry_repair(services, ()),
}


@pytest.fixture
def story(ledger_dsn: str, tmp_path: Path) -> Story:
    return a_landed_story(ledger_dsn, tmp_path, 5)


def edited(story: Story, section: str, **values: Any) -> Services:
    """The story's services, with a file that was edited."""
    services = story.services()
    document = services.feed.model_dump(mode="json", by_alias=True)
    document[section].update(values)
    return replace(services, feed=Feed.model_validate(document))


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_no_command_takes_another_topic_for_a_recreated_one(
    story: Story, command: Callable[[Services], object]
) -> None:
    services = edited(story, "source", topic="customers")
    services.broker.recreate()  # type: ignore[attr-defined]  # as another topic shows itself
    with pytest.raises(ConfigurationError, match=r"source\.topic is 'customers'.*orders, which"):
        command(services)
    assert list(services.ledger.findings(FEED)) == []


def test_two_isolations_in_one_directory_are_said(story: Story) -> None:
    services = edited(story, "source", isolation="read_uncommitted")
    [before] = dry_run(services, None).warnings
    assert "all batches of this feed were read read_committed" in before
    story.broker.logs[0].append(Kind.ABORTED, 3)
    assert land_feed(services, None, RUN).plan.warnings == (before,)
    for after in (services, story.services()):
        found = reconcile(after)
        [said] = found.warnings
        assert "Batches of two isolations lie in this feed's directory" in said
        assert report_of(after, found).warnings == (said,)


def test_another_root_is_said_before_anything_lands_below_it(story: Story) -> None:
    services = edited(story, "target", root="/elsewhere")
    for warnings in (dry_run(services, None).warnings, reconcile(services).warnings):
        [said] = warnings
        assert "all batches of this feed lie below /landing" in said


def test_a_batch_below_a_root_that_was_a_mistake_is_landed_below_the_right_one(
    story: Story,
) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3)
    wrong = edited(story, "target", root="/elsewhere")
    [planned] = plan_feed(wrong, None, RUN).batches  # and HDFS refuses to make that directory
    assert planned.root == "/elsewhere"

    report = land_feed(story.services(), None, RUN)

    assert [each.root for each in report.plan.batches] == ["/landing"]
    assert story.published_offsets() == {each: [*range(8)] for each in (0, 1)}
    assert wrong.ledger.batch(planned.batch_id).state is BatchState.ABANDONED


def test_a_batch_of_which_an_attempt_left_files_below_another_root_is_no_mistake(
    story: Story,
) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3)
    wrong = edited(story, "target", root="/elsewhere")
    [planned] = plan_feed(wrong, None, RUN).batches
    assert land_batch(wrong, planned.batch_id, AttemptId("1" * 16), RUN)  # it dies there

    report = land_feed(story.services(), None, RUN)

    assert [each.root for each in report.plan.adopted] == ["/elsewhere"]


def test_a_renamed_feed_is_warned_of_before_all_is_landed_again(story: Story) -> None:
    services = story.services()
    renamed = replace(
        services,
        feed=services.feed.model_copy(update={"name": "sales"}),
        declared=lambda: ["sales"],
    )
    [said] = dry_run(renamed, None).warnings
    assert said.startswith("Feed orders has landed a topic named orders, and has no file any more.")
    both = replace(renamed, declared=lambda: ["orders", "sales"])
    assert dry_run(both, None).warnings == ()


def test_a_plan_leaves_on_record_what_the_file_says_and_a_dry_run_does_not(story: Story) -> None:
    services = edited(story, "schedule", cron="*/5 * * * *", timezone="Asia/Tokyo")
    ledger = services.ledger

    def on_record() -> FeedInFile | None:
        [head] = ledger.feed_heads(FEED, most_runs=1)
        return head.described

    before = on_record()
    dry_run(services, None)
    assert on_record() == before == in_file(story.services().feed)
    plan_feed(services, None, RUN)
    assert on_record() == in_file(services.feed) != before
