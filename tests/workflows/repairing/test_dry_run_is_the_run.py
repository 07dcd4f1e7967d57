"""What a dry run of a repair shows is what the repair does, whatever troubles come together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import psycopg
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.batch import WaitingBatch
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import Owner
from tallystick.domain.rules.n3_unfinished_batch import unfinished_batches
from tallystick.domain.verdicts import FindingState
from tallystick.errors import LedgerBehind
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import RepairReport, dry_repair, repair_feed
from tallystick.workflows.services import Services
from tests.support.ledger_server import OWNER_ROLE
from tests.support.scripted_broker import Kind, MinuteByMinute, ScriptedSpark
from tests.support.story import FEED, Story, a_landed_story
from tests.workflows.repairing.test_repairing_overlaps import _FORGET, _REMEMBER

OWNER, OTHER = Owner("one"), Owner("another")
UNREADABLE: Final = (1, 22)


def blind(story: Story) -> Services:
    """Services whose Spark can't read one record."""
    services = story.services()
    spark = ScriptedSpark(story.broker, services.store)
    spark.unreadable = {UNREADABLE: "ArithmeticException"}
    return replace(services, spark=spark)


def files(story: Story) -> list[Path]:
    """The committed files that readers find, oldest batch first."""
    names = [each.file.name for each in story.services().ledger.files(FEED)]
    found = {each.name: each for each in (story.directory / "landing" / FEED).rglob("*.parquet")}
    return [found[name] for name in names]


def share_offsets(story: Story) -> None:
    """Partition 0 is landed once more, past a schema that somebody has switched off."""
    with psycopg.connect(story.dsn, user=OWNER_ROLE, autocommit=True) as hand:
        for each in _FORGET:
            hand.execute(each)  # type: ignore[call-overload]
        land_feed(story.services(), None, OTHER)
        for each in _REMEMBER:
            hand.execute(each)  # type: ignore[call-overload]


def leave_unread(story: Story) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 4)
    for _ in range(3):
        land_feed(blind(story), None, OTHER)


def cut(story: Story) -> None:
    log = story.broker.logs[0]
    log.cut(14)
    log.append(Kind.RECORD, 20, value=b"other")
    land_feed(story.services(), None, OTHER)


def left_behind(lease: timedelta) -> Callable[[Story], None]:
    def leave(story: Story) -> None:
        story.broker.logs[1].append(Kind.RECORD, 5)
        [batch] = plan_feed(story.services(lease=lease), None, OTHER).batches
        waiting = [WaitingBatch(batch.batch_id, BatchState.PLANNED, 36_000.0)]
        found = unfinished_batches(FEED, "orders", waiting)
        story.services().ledger.record_findings(FEED, found)

    return leave


def damage(story: Story) -> None:
    file = files(story)[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0xFF
    file.write_bytes(bytes(content))


def copy(story: Story) -> None:
    file = files(story)[1]
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())


def move(story: Story) -> None:
    directory = files(story)[2].parent
    target = directory.parent.parent / "hour=13" / directory.name
    target.parent.mkdir(exist_ok=True)
    directory.rename(target)


def make_bare(story: Story) -> None:
    """A batch's directory that nobody knows, with rows far beyond all that is landed."""
    file = files(story)[0]
    table = pq.read_table(file, partitioning=None)
    directory = file.parent.with_name("batch=00000000000000aa")
    directory.mkdir()
    place = table.schema.get_field_index("offset")
    shifted = table.set_column(place, "offset", pc.add(table["offset"], 1_000))
    pq.write_table(shifted, directory / "x.parquet")


def expire(story: Story) -> None:
    story.broker.logs[1].log_start_offset = 4


# In the order in which they happen: the log and the ledger first, then the files.
TROUBLES: Final[Mapping[str, Callable[[Story], object]]] = {
    "two files share offsets": share_offsets,
    "unreadable record": leave_unread,
    "cut log": cut,
    "batch that nobody holds": left_behind(timedelta(0)),
    "batch that another holds": left_behind(timedelta(hours=1)),
    "copied": copy,
    "bare directory": make_bare,
    "changed": damage,
    "lost manifest": lambda story: (files(story)[0].parent / "_tally.json").unlink(),
    "moved": move,
    "missing": lambda story: files(story)[1].unlink(),
    "log that lost a part": expire,
}


def shown(services: Services, numbers: Collection[int]) -> RepairReport | None:
    """What the dry run says; None where it refuses, for the ledger is behind."""
    try:
        return dry_repair(services, numbers)
    except LedgerBehind:
        return None


def require_done(story: Story, dry: RepairReport, run: RepairReport, chosen: set[int]) -> None:
    """The run has performed what was shown, and says of each finding what became of it."""
    left = {each.finding_id for each in run.not_mended}
    assert replace(run.plan, not_mended=()) == replace(dry.plan, not_mended=())
    assert run.plan.not_mended[: len(dry.plan.not_mended)] == dry.plan.not_mended
    assert not left & run.closed.keys()
    ledger = story.services().ledger
    over = {
        each.finding_id
        for each in dry.plan.adopt
        if not ledger.batch(each.batch_id).state.is_unfinished
    }
    replaced = ledger.replacements(FEED)
    landed = {
        number
        for again in dry.plan.land_again
        if all(each in replaced for each in again.replaces)
        for number in again.finding_ids
    }
    assert landed.isdisjoint(left)
    assert chosen <= left | landed | over | run.closed.keys()
    standing = {each.finding_id for each in ledger.findings(FEED)}
    assert not standing & run.closed.keys()
    shown_quarantined = {(each.path, each.quarantine) for each in dry.plan.quarantined}
    assert {(each.path, each.quarantine) for each in run.quarantined} <= shown_quarantined


@settings(
    max_examples=10,
    derandomize=True,
    phases=(Phase.generate,),  # an example takes a second: none is made smaller
)
@given(
    troubles=st.sets(st.sampled_from(sorted(TROUBLES)), min_size=1, max_size=4),
    named=st.sampled_from(["none", "all", "every second"]),
    is_blind=st.booleans(),
)
def test_what_is_shown_is_done(
    ledger_databases: Callable[[], str],
    tmp_path: Path,
    troubles: set[str],
    named: str,
    is_blind: bool,
) -> None:
    directory = Path(mkdtemp(dir=tmp_path))
    story = a_landed_story(ledger_databases(), directory, 10, 6, 4, broker=MinuteByMinute("orders"))
    for name, happens in TROUBLES.items():
        if name in troubles:
            happens(story)
    reconcile(story.services())
    standing = story.services().ledger.findings(FEED)
    numbers = [each.finding_id for each in standing if each.state is FindingState.OPEN]
    chosen = {"none": [], "all": numbers, "every second": numbers[::2]}[named]
    services = blind(story) if is_blind else story.services()
    dry = shown(services, chosen)
    if dry is None:
        with pytest.raises(LedgerBehind):
            repair_feed(services, chosen, OWNER)
    else:
        run = repair_feed(services, chosen, OWNER)
        require_done(story, dry, run, set(chosen or numbers))


def test_a_ledger_that_is_behind_and_was_not_asked_before_is_told(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    """The repair puts it on record, and leaves it."""
    story = a_landed_story(ledger_databases(), tmp_path, 4, broker=MinuteByMinute("orders"))
    make_bare(story)

    [told] = dry_repair(story.services(), ()).errors
    done = repair_feed(story.services(), (), OWNER)

    assert isinstance(told, LedgerBehind)
    assert [each.reason[:38] for each in done.not_mended] == [
        "Nothing is landed until this is mended"
    ]
    assert not dry_repair(story.services(), ()).errors, "on record it is left as any other"
