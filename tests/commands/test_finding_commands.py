"""`findings`, `explain`, `repair` and `waive` at the command line, over a real ledger and files."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.batch import WaitingBatch
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.rules.n3_unfinished_batch import unfinished_batches
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.planning.plan import plan_feed
from tests.support.command_line import CommandLine
from tests.support.scripted_broker import Kind
from tests.support.story import Story
from tests.support.waivers import accept


@pytest.fixture
def missing(landing: CommandLine, story: Story) -> CommandLine:
    """All is landed, a file is gone, and reconcile has found that."""
    assert landing("land", "orders", "--json").code == 0
    published(story)[0].unlink()
    assert landing("reconcile", "orders", "--json").code == 1
    return landing


def published(story: Story) -> list[Path]:
    return sorted((story.directory / "landing" / "orders").rglob("*.parquet"))


def listed(run: CommandLine, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run("findings", "orders", "--json", *options).json["findings"]
    return found


def numbers(run: CommandLine) -> list[str]:
    return [str(each["number"]) for each in listed(run)]


def test_findings_are_listed_by_the_number_that_reconcile_tells(missing: CommandLine) -> None:
    told = missing("findings", "orders", "--json")
    assert told.code == 1
    found = told.json["findings"]
    assert found
    assert {each["code"] for each in found} == {"A8"}
    again = missing("reconcile", "orders", "--json").json["findings"]
    assert sorted(each["number"] for each in again) == [each["number"] for each in found]
    lines = missing("findings", "orders").out.splitlines()
    assert lines[0] == "Feed orders: 1 trouble."
    assert lines[1].split() == [
        "finding",
        "state",
        "verdict",
        "what",
        "where",
        "first",
        "seen",
        "evidence",
        "cause",
    ]
    assert lines[-1] == "next: tallystick explain FINDING says what one means and what to do."


def test_no_finding_is_an_answer_too(landing: CommandLine) -> None:
    told = landing("findings", "orders")
    assert (told.code, told.out) == (0, "Feed orders has no findings.\n")


def test_a_finding_is_explained_with_its_evidence_and_the_next_command(
    missing: CommandLine,
) -> None:
    number = listed(missing)[0]["number"]
    told = missing("explain", str(number))
    assert told.code == 0
    assert told.out.startswith(
        f"Finding {number} of feed orders: A8 committed file missing, PROVEN_LOSS"
    )
    assert "evidence: file = " in told.out
    assert told.out.rstrip().endswith(f"tallystick repair orders {number}")
    assert re.search(
        r"how much: \d+ rows of the batch of 2026-11-01 12:30Z are missing\.", told.out
    )
    document = missing("explain", str(number), "--json").json
    assert document["finding"]["number"] == number
    assert document["compares"]


def test_an_unknown_number_is_wrong_use(missing: CommandLine) -> None:
    for command in (("explain", "4711"), waive(4711, "00000000")):
        told = missing(*command)
        assert told.code == 2
        assert "FINDING is '4711'" in told.err


def test_a_dry_run_says_what_will_be_lost(missing: CommandLine, story: Story) -> None:
    dry = missing("repair", "orders", *numbers(missing), "--dry-run", "--json")
    [asked] = dry.json["land_again"][0]["ranges"]
    place, first = asked["partition"], asked["from_offset"]
    story.broker.logs[place].log_start_offset = first + 1
    told = missing("repair", "orders", *numbers(missing), "--dry-run")
    gone = f"orders-{place} [{first}, {first + 1})"
    assert f"Kafka no longer has {gone}, and the files are gone: these rows are lost" in told.out
    again = missing("repair", "orders", *numbers(missing), "--dry-run", "--json")
    assert again.json["land_again"][0]["gone"] == [{**asked, "until_offset": first + 1}]
    assert again.code == missing("repair", "orders", *numbers(missing), "--json").code == 1


def test_a_dry_run_and_a_repair_say_the_same(missing: CommandLine, story: Story) -> None:
    dry = missing("repair", "orders", *numbers(missing), "--dry-run", "--json")
    assert dry.code == 0, dry.err
    assert listed(missing)
    real = missing("repair", "orders", *numbers(missing), "--json")
    assert real.code == 0, real.err
    assert real.json["land_again"] == dry.json["land_again"]
    assert [each["outcome"] for each in real.json["batches"]] == ["published"]
    assert listed(missing) == []
    assert missing("reconcile", "orders", "--json").code == 0
    ended = listed(missing, "--all")
    assert {each["state"] for each in ended} == {"remedied"}
    assert all("took the place of" in each["closed_by"] for each in ended)


def test_a_finding_that_has_ended_is_listed_with_its_cause_and_with_what_ended_it(
    missing: CommandLine,
) -> None:
    [standing] = listed(missing)
    header = missing("findings", "orders").out.splitlines()[1]
    assert "closed by" not in header
    assert missing("repair", "orders", *numbers(missing)).code == 0
    _, header, row, _ = missing("findings", "orders", "--all").out.splitlines()
    [ended] = listed(missing, "--all")
    cause, by = header.index("cause"), header.index("closed by")
    rows = f"{ended['extent']['rows']} rows of the batch of 2026-11-01 12:30Z were concerned."
    assert row[cause:by].strip() == f"{rows} {standing['cause']}"
    assert standing["cause"] == ended["cause"]
    assert row[by:] == ended["closed_by"]


def test_what_is_left_is_told_with_its_reason(missing: CommandLine, story: Story) -> None:
    for log in story.broker.logs.values():
        log.log_start_offset = len(log.entries)
    told = missing("repair", "orders")
    assert told.code == 1
    assert "is left: the broker has none of these offsets any more" in told.out


def test_a_repair_that_mends_everything_is_clean(landing: CommandLine, story: Story) -> None:
    assert landing("land", "orders", "--json").code == 0
    file = published(story)[0]
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    assert landing("reconcile", "orders", "--json").code == 1
    assert {each["code"] for each in listed(landing)} == {"A9", "B2"}
    dry = landing("repair", "orders", "--dry-run")
    assert dry.code == 0, dry.out
    assert " ends with finding " in dry.out
    told = landing("repair", "orders", "--json")
    assert told.code == 0, told.err
    assert told.json["not_mended"] == []
    assert listed(landing) == []


def test_a_repair_that_leaves_a_batch_to_another_owner_is_not_clean(
    landing: CommandLine, story: Story
) -> None:
    assert landing("land", "orders", "--json").code == 0
    story.broker.logs[0].append(Kind.RECORD, 3)
    services = story.services(lease=timedelta(hours=1))
    [batch] = plan_feed(services, None, Owner("another")).batches
    waiting = [WaitingBatch(batch.batch_id, BatchState.PLANNED, 36_000.0)]
    found = unfinished_batches("orders", "orders", waiting)
    services.ledger.record_findings(FeedName("orders"), found)
    told = landing("repair", "orders")
    assert told.code == 1
    assert f"is left: Batch {batch.batch_id} is planned still, held by another" in told.out


def test_nothing_to_mend_is_clean(landing: CommandLine) -> None:
    assert landing("land", "orders", "--json").code == 0
    told = landing("repair", "orders")
    assert told.code == 0
    assert "There is nothing to mend." in told.out


def waive(
    number: int, evidence: str, approved_by: str = "Grace", until: str = "2199-01-01"
) -> tuple[str, ...]:
    return (
        *("waive", str(number), "--evidence", evidence),
        *("--reason", "emptied on purpose", "--asked-by", "Ada"),
        *("--approved-by", approved_by, "--until", until),
    )


def as_read(found: dict[str, Any]) -> tuple[str, ...]:
    return waive(found["number"], found["evidence_digest"])


def test_a_waived_finding_fails_nothing_any_more(missing: CommandLine) -> None:
    for each in listed(missing):
        told = missing(*as_read(each))
        assert told.code == 0, told.err
        assert "is waived until 2199-01-01T00:00:00+00:00" in told.out
    assert missing("findings", "orders", "--json").code == 0
    told = missing("reconcile", "orders", "--json")
    assert told.code == 0
    assert {each["state"] for each in told.json["findings"]} == {"waived"}
    assert re.search(r"  WAIVED  \d+ rows .*  A8 ", missing("reconcile", "orders").out)
    report = missing("report", "orders", "--json")
    assert (report.code, report.json["verdict"]) == (0, "WAIVED")


def test_a_waived_finding_says_who_accepted_it_and_until_when(missing: CommandLine) -> None:
    [found] = listed(missing)
    number = str(found["number"])
    assert missing(*as_read(found)).code == 0
    assert "waived until 2199-01-01T00:00:00+00:00" in missing("findings", "orders").out
    told = missing("explain", number)
    assert (
        "waived until 2199-01-01T00:00:00+00:00, or until its evidence changes:"
        " asked by Ada, approved by Grace, because: emptied on purpose\n"
    ) in told.out
    assert "next:" not in told.out
    assert missing("explain", number, "--json").json["finding"]["waiver"] == {
        "state": "in force",
        "reason": "emptied on purpose",
        "asked_by": "Ada",
        "approved_by": "Grace",
        "expires_at": "2199-01-01T00:00:00+00:00",
        "evidence_digest": found["evidence_digest"],
        "ending": None,
    }
    assert "next:" not in missing("reconcile", "orders").out


def test_a_finding_that_is_open_again_says_that_its_waiver_has_expired(
    missing: CommandLine, story: Story, two_hours_pass: Callable[[], None]
) -> None:
    number = listed(missing)[0]["number"]
    until = datetime.now(UTC) + timedelta(hours=1)
    with closing(Ledger(story.dsn)) as ledger:
        accept(ledger, number, until)
    two_hours_pass()
    instant = (until - timedelta(hours=2)).isoformat(timespec="seconds")
    assert f"open, waiver expired {instant}" in missing("findings", "orders").out
    told = missing("explain", str(number))
    assert f"was waived until {instant}, which is over: asked by Ada" in told.out
    assert told.out.splitlines()[-1].startswith("next: ")
    document = missing("explain", str(number), "--json").json["finding"]
    assert (document["state"], document["waiver"]["state"]) == ("open", "expired")


def test_a_finding_that_was_never_waived_has_no_waiver(missing: CommandLine) -> None:
    [found] = listed(missing)
    assert found["waiver"] is None
    assert "waived" not in missing("explain", str(found["number"])).out


@pytest.mark.parametrize(
    ("approved_by", "until", "said"),
    [
        ("ada", "2199-01-01", "another person's name"),
        ("Grace", "2020-01-01", "still to come"),
        ("Grace", "9999-12-31", "before 9999-01-01"),
    ],
)
def test_a_waiver_needs_two_people_and_an_end(
    missing: CommandLine, approved_by: str, until: str, said: str
) -> None:
    [found] = listed(missing)
    told = missing(*waive(found["number"], found["evidence_digest"], approved_by, until))
    assert told.code == 2
    assert said in told.err


def damaged(landing: CommandLine, story: Story) -> Path:
    """A committed file of which one byte is another, as a reconcile has found."""
    assert landing("land", "orders", "--json").code == 0
    file = published(story)[0]
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert landing("reconcile", "orders", "--json").code == 1
    return file


def test_a_finding_is_not_waived_in_another_state_than_was_read(
    landing: CommandLine, story: Story
) -> None:
    file = damaged(landing, story)
    [read] = listed(landing)
    file.write_bytes(b"")
    assert landing("reconcile", "orders", "--json").code == 1

    told = landing(*as_read(read))

    [worse] = listed(landing)
    assert (worse["number"], worse["state"]) == (read["number"], "open")
    assert told.code == 3
    digests = f"{worse['evidence_digest']} by now, not {read['evidence_digest']}"
    assert f"the evidence of finding {read['number']} is {digests}: {worse['cause']}" in told.err
    assert "Read it again: tallystick explain FINDING" in told.err
    assert landing(*as_read(worse)).code == 0


def test_explain_gives_the_command_that_accepts_what_it_tells(missing: CommandLine) -> None:
    [found] = listed(missing)
    digest = found["evidence_digest"]
    assert f" {digest} " in missing("findings", "orders").out
    told = missing("explain", str(found["number"])).out.splitlines()
    assert f"evidence digest: {digest}" in told
    [command] = [each for each in told if each.startswith("if two people accept it: ")]
    given = command.removeprefix("if two people accept it: tallystick ").split()
    filled = {"TEXT": "known", "T": "2199-01-01"}
    people = iter(("Ada", "Grace"))
    words = [next(people) if each == "NAME" else filled.get(each, each) for each in given]
    assert missing(*words).code == 0
    told = missing("explain", str(found["number"])).out.splitlines()
    assert f"evidence digest: {digest}" in told
    assert not [each for each in told if each.startswith("if two people")]


def copied(landing: CommandLine, story: Story) -> list[dict[str, Any]]:
    """The findings about a committed file of which a copy lies beside it: all are one trouble."""
    assert landing("land", "orders", "--json").code == 0
    file = published(story)[0]
    (file.parent / "copy.parquet").write_bytes(file.read_bytes())
    assert landing("reconcile", "orders", "--json").code == 1
    found = listed(landing)
    assert len({each["trouble"] for each in found}) == 1 < len(found)
    return found


def test_a_trouble_is_waived_by_the_command_that_explain_gives_and_ended_as_a_whole(
    landing: CommandLine, story: Story
) -> None:
    found = copied(landing, story)
    digests = list(dict.fromkeys(each["evidence_digest"] for each in found))
    number = str(found[0]["number"])
    given = "".join(f" --evidence {each}" for each in digests)
    assert f"tallystick waive {number}{given} --reason" in landing("explain", number).out
    if len(digests) > 1:
        assert landing(*waive(found[0]["number"], digests[0])).code == 3
        assert {each["state"] for each in listed(landing)} == {"open"}
    told = landing(*waive(found[0]["number"], digests[0]), *given.split())
    assert told.code == 0, told.err
    assert told.out.startswith("Findings 1-")
    assert " are waived until 2199-01-01" in told.out
    assert {each["state"] for each in listed(landing)} == {"waived"}

    told = landing("unwaive", number, "--by", "Eve", "--reason", "not on purpose")

    assert told.code == 0, told.err
    assert " are open again." in told.out
    for each in listed(landing):
        assert (each["state"], each["waiver"]["state"]) == ("open", "ended")
    assert "open, waiver ended" in landing("findings", "orders").out
    assert ": Eve ended it (not on purpose): asked by Ada" in landing("explain", number).out
    assert landing("unwaive", number, "--by", "Eve", "--reason", "twice").code == 3


def test_half_a_waiver_names_the_finding_that_moves_the_copy(
    landing: CommandLine, story: Story
) -> None:
    found = copied(landing, story)
    [stray] = [each["number"] for each in found if each["code"] == "A9"]
    with closing(Ledger(story.dsn)) as ledger:
        accept(ledger, stray)
    told = landing("repair", "orders", "--dry-run")
    assert f"its finding {stray} (A9) is accepted, and moves it when it is named." in told.out
    others = [str(each["number"]) for each in found if each["code"] != "A9"]
    assert landing("unwaive", str(stray), "--by", "Eve", "--reason", "half").code == 0
    told = landing("repair", "orders", *others, "--dry-run")
    assert f"its finding {stray} (A9) moves it when it is named." in told.out
    assert landing("repair", "orders").code == 0
    assert listed(landing) == []
