"""Repairs and reopened logs are in a rebuilt ledger what they were in the lost one."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from tallystick.domain.rules.findings import FindingCode
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.landed_feed import OWNER, directories, files, land
from tests.support.ledger_account import account_of
from tests.support.repaired import repaired
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story


def test_repairs_come_after_what_they_replaced(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    services = story.services()
    for _ in range(3):
        oldest = services.ledger.files(FEED)[0]
        repaired(services, oldest)
    # A repair of a repair.
    repaired(services, services.ledger.files(FEED)[-1])
    before = account_of(story)
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert account_of(after) == before
    assert after.published_offsets() == {0: [*range(10)], 1: [*range(7)]}
    order = [each.batch.plan for each in report.entered]
    for number, plan in enumerate(order):
        known = {each.batch_id for each in order[:number]}
        assert {each.batch_id for each in plan.replaces} <= known


def test_a_replaced_file_may_still_lie_there_whole_or_damaged(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    services = story.services()
    first = services.ledger.files(FEED)[0]
    old = next(each for each in files(story) if each.name == first.file.name)
    content = old.read_bytes()
    repaired(services, first)
    before = account_of(story)
    for left_behind in (content, content[:100]):
        old.write_bytes(left_behind)
        after = lose(story)
        assert rebuild(after.services()).is_whole
        assert account_of(after) == before


def test_a_repair_whose_batch_is_gone_is_a_batch_of_its_own(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    services = story.services()
    plan = repaired(services, services.ledger.files(FEED)[0])
    (old,) = [each for each in directories(story) if each.name.endswith(plan.replaces[0].batch_id)]
    shutil.rmtree(old)
    after = lose(story)
    report = rebuild(after.services())
    (entered,) = [each for each in report.entered if each.batch.plan.batch_id == plan.batch_id]
    assert "what it repaired is not on record: entered as a batch of its own" in entered.notes
    assert report.is_whole


def test_what_a_repair_could_not_land_again_is_lost_again(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    """The repair's manifest says which file it replaced, and which of its offsets it has."""
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 12)
    land(story)
    victim = max(files(story), key=lambda each: each.stat().st_size)
    name = victim.name
    victim.unlink()
    reconcile(story.services())
    record = next(each for each in story.services().ledger.files(FEED) if each.file.name == name)
    for each in record.file.slices:
        story.broker.logs[each.partition].log_start_offset = each.last_offset - 1
    report = repair_feed(story.services(), story.named(), OWNER)
    assert report.plan.land_again
    both = ("committed", "lost")
    before = account_of(story, states=both)
    assert {key[2] for key in before["committed"]} == set(both)
    after = lose(story)
    assert rebuild(after.services()).is_whole
    assert account_of(after, states=both) == before
    codes = {each.code for each in reconcile(after.services()).findings}
    assert codes == {FindingCode.COMMITTED_FILE_MISSING}


def test_a_log_that_was_opened_anew_on_the_operators_word(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    """One partition has a second generation, the other one goes on in its first."""
    land(story)
    story.broker.logs[1].cut(5)
    land(story)
    (stopped,) = story.services().ledger.findings(FEED)
    repair_feed(story.services(), (stopped.finding_id,), OWNER)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 6)
    land(story)
    before = account_of(story)
    assert {key[:2] for key in before["committed"]} == {(0, 1), (1, 1), (1, 2)}
    after = lose(story)
    assert rebuild(after.services()).is_whole
    assert account_of(after) == before
    assert land(after).plan.all_batches == ()
    story.broker.logs[1].append(Kind.RECORD, 2)
    assert {each.ordinal for each in land(after).plan.all_batches} == {2}
