"""The routes answer with these documents: docs/page.md describes every field.

Batches, runs and reports are the ledger's own values: `ledger/overview.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.ledger.history import RecentRun, WaiverStep
from tallystick.ledger.overview import BatchHead, ReportHead, RunHead
from tallystick.report.batch_parts import BatchPart, FilePart
from tallystick.report.documents import ExplainDocument, Part, RangePart


class NextRunPart(Part):
    """Airflow will start this run next, of one of the feed's DAGs."""

    dag_id: str
    at: datetime | None
    """Null where it is paused, or runs by hand or after others only."""
    is_paused: bool


class Sign(Part):
    """Something about a feed that somebody must see to."""

    feed: str | None
    """Null for what is wrong with all of them."""
    said: str
    since: datetime | None
    """Null where nobody knows."""
    act: str
    """Who must do what."""
    dag_id: str | None = None
    run_id: str | None = None
    """The run that tells more."""
    sentence: str | None = None
    """With which the first task of that run has failed."""
    finding: int | None = None
    """The finding that it is about."""


class FeedAnswer(Part):
    """One feed in a few words."""

    feed: str
    topic: str
    described: FeedInFile | None = None
    """As its file was at the newest plan."""
    verdict: Verdict
    """The worst of what stands now; UNKNOWN where nobody could tell."""
    complete_up_to: datetime | None
    complete_by: CompleteBy | None
    complete_told_at: datetime | None
    """The end of the run that said it; null before the first one."""
    lag: int | None
    """Offsets that the newest look showed and that are not landed; null where it can't tell."""
    seconds_to_loss: float | None
    """Until retention may take the oldest of them, at least."""
    partitions: int
    looked_at: datetime | None
    border_at: datetime | None
    """The end of the newest window at that look; null for a feed that lands all it can read."""
    storage_heard_at: datetime | None
    """When a reconcile heard storage last."""
    report: ReportHead | None
    findings: Mapping[str, int]
    """How many stand, by verdict; accepted ones as WAIVED."""
    open_findings: int
    open_since: datetime | None
    """When the first of them was seen."""
    failing_at: datetime | None
    """When the newest of them was seen that fails a run."""
    open_troubles: int | None
    """What they come from: one deleted file of six partitions is one. Null where more than 2 000
    findings would have to be read, of a list those of the feeds before it, too."""
    runs: Sequence[RunHead]
    next_runs: Sequence[NextRunPart] = ()
    """Of its DAGs that Airflow has."""


class FeedsAnswer(Part):
    """All feeds that the user may see, worst first."""

    feeds: Sequence[FeedAnswer]
    wrong: Sequence[str]
    """Feeds with a sign."""
    known: int
    """How many feeds there are, with those of which Airflow has DAGs only."""
    signs: Sequence[Sign]
    """All that is wrong, of the worst feed first."""
    recent: Mapping[str, Sequence[RecentRun]]
    """By feed, its last 24 runs in numbers, oldest first."""
    today: datetime
    """When this day began, in UTC: where yesterday ends."""
    yesterday_open: Sequence[str]
    """Feeds that are not proven complete up to there, or to their newest window before it."""


class PartitionAnswer(Part):
    """One partition's newest log."""

    partition: int
    generation: int
    state: str
    verdict: Verdict
    first_offset: int
    frontier: int
    log_start_offset: int | None
    high_watermark: int | None
    lag: int | None
    rows: int
    holes: Mapping[str, int]
    lost: int


class PartitionsAnswer(Part):
    """A page of a feed's partitions, worst first, then by lag."""

    feed: str
    total: int
    matching: int
    offset: int
    partitions: Sequence[PartitionAnswer]


class BatchesAnswer(Part):
    """A page of a feed's batches, newest first."""

    feed: str
    batches: Sequence[BatchHead]
    ranges: Mapping[str, Sequence[RangePart]]
    """By batch; of those with few partitions."""
    before: int | None
    """To ask for the next page; null on the last one."""


class BatchAnswer(Part):
    """One batch: what it holds, where, and who says so."""

    feed: str
    batch: BatchPart
    files: Sequence[FilePart]
    """One for each file and partition, those that a repair has replaced, too."""
    commands: Sequence[str]
    """To read it; none where readers find nothing of it."""


class FindingsAnswer(Part):
    """A page of a feed's standing findings: those of one trouble together, the worst first."""

    feed: str
    total: int
    troubles: int
    """How many all of them are."""
    offset: int
    findings: Sequence[FindingPart]


class WaiverRequestPart(Part):
    """One person asks for a waiver; the request may have ended."""

    number: int
    reason: str
    asked_by: str
    asked_at: datetime
    expires_at: datetime
    """Excluded."""
    evidence_digest: str
    is_own_request: bool
    """Of who asks this now, so they can't approve it."""
    may_be_approved: bool
    """By somebody else: it stands, its end is to come, and the evidence is what was read."""
    ending: str | None
    ended_by: str | None
    ended_at: datetime | None
    together: Mapping[int, int]
    """By finding of the same trouble, the requests that were made at once and may be approved."""


class FindingAnswer(ExplainDocument):
    """A finding with its rule, and what may be done about it."""

    repair_evidence: Mapping[int, str]
    """By number, the digests of those that a repair from here names, 1 000 at most: its own, and
    open ones of its trouble; of a finding that is accepted all."""
    others: Sequence[FindingPart]
    """Those that the next step about a waiver is of, beside this one: each is to be read."""
    has_repair: bool
    """True where a repair may mend it."""
    waiver_request: WaiverRequestPart | None
    """The newest one."""


class DryRunLine(Part):
    """One thing that would be done, or could not."""

    text: str
    is_warning: bool


class DryRunPart(Part):
    """A dry run would do this."""

    lines: tuple[DryRunLine, ...]
    left_out: int
    evidence: tuple[str, ...] = ()
    """Of a repair: the digests of the findings that it was about."""
    has_steps: bool = True
    """False where the repair itself would do nothing."""


class AskedRunPart(Part):
    """One run as Airflow knows it."""

    dag_id: str
    run_id: str
    state: str
    """Airflow's own word."""
    is_dry_run: bool
    findings: Sequence[int]
    """Those that a repair names; none: all that are open."""
    evidence: Sequence[str]
    """The digests that it names beside them; none: nothing is compared."""
    asked_by: str | None
    queued_at: datetime | None
    ended_at: datetime | None
    plan: DryRunPart | None
    """Of a dry run that has come so far."""
    feed: str | None = None
    """Which one it names, of those that share the DAG; null elsewhere, and where it is of all."""

    @property
    def is_under_way(self) -> bool:
        """True until Airflow says how it has ended."""
        return self.state not in ("success", "failed")


class RepairsAnswer(Part):
    """Repairs of a feed, newest first."""

    feed: str
    dag_id: str
    is_paused: bool
    """While it is, no run begins."""
    runs: Sequence[AskedRunPart]


class FailedTry(Part):
    """A try of one of a run's tasks has failed."""

    task_id: str
    map_index: int | None
    """Which one it is of a task that a run has several times."""
    try_number: int
    is_tried_again: bool
    """True where it was not the last one."""
    sentence: str | None
    """With which it failed; null where that is not known: its log tells more."""


class RunAnswer(Part):
    """One run has planned, landed, proven and found this."""

    feed: str
    owner: str
    windows: Sequence[Window | None]
    planned_at: datetime | None
    batches: Sequence[BatchHead]
    ranges: Mapping[str, Sequence[RangePart]]
    """By batch; of those with few partitions."""
    findings: Sequence[FindingPart]
    report: ReportHead | None
    """The report that it has made; its findings are told as they stand now."""
    asked: AskedRunPart | None = None
    """As Airflow knows it; null where it has no such run, or does not tell this user."""
    asked_findings: Sequence[FindingPart] = ()
    """Those that a repair names, as they stand now; else those that ended while it ran."""
    failed_tries: Sequence[FailedTry] = ()
    """What failed first at the front."""
    is_paused: bool = False
    """True for a run of a DAG that begins none now."""
    feeds: Mapping[str, Verdict] | None = None
    """Of a run for all feeds of a group; null elsewhere."""


class RetiredAnswer(Part):
    """A feed has ended with this."""

    feed: str
    commits: int
    digest: str | None
    """Of the last one."""


class ReportsAnswer(Part):
    """A page of a feed's stored reports, newest first."""

    feed: str
    reports: Sequence[ReportHead]
    before: int | None
    """To ask for the next page; null on the last one."""


class HistoryAnswer(Part):
    """What was wrong with a feed: everything of a stretch of time, newest first."""

    feed: str
    verdicts: Sequence[ReportHead]
    """The reports with which another verdict began."""
    closed: Sequence[FindingPart]
    """Findings by when they were closed, those of one trouble together."""
    waivers: Sequence[WaiverStep]
    before: datetime | None
    """To ask for what was earlier; null where there is nothing."""


class MovedPart(Part):
    """A partition of which two reports say different things; null where one does not know it."""

    partition: int
    earlier_generation: int | None
    later_generation: int | None
    earlier_verdict: Verdict | None
    later_verdict: Verdict | None
    earlier_frontier: int | None
    later_frontier: int | None


class ChangesAnswer(Part):
    """Two reports differ in this."""

    feed: str
    earlier: ReportHead
    later: ReportHead
    complete_moved_seconds: float | None
    """How far "complete up to" has moved; null where one of the two proves no time."""
    frontier_moved: int
    """Offsets, of all partitions whose log is the same one."""
    new_total: int
    ended_total: int
    stays_total: int
    """Findings of both reports."""
    new_findings: Sequence[FindingPart]
    """Worst trouble first, 100 findings at most, as the later report tells them."""
    ended_findings: Sequence[FindingPart]
    """Those that the later report has no more; as the earlier one tells them."""
    moved_total: int
    """Partitions that are in `moved`, or would be."""
    moved: Sequence[MovedPart]
    """Other verdicts first, the worst of them first; 100 at most."""
