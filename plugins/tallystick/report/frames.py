"""The report as pandas frames: what its faces, a notebook and a program work with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import pandas as pd

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.document import (
    AgePart,
    BandPart,
    ColumnPart,
    PartitionPart,
    ReportDocument,
)
from tallystick.domain.report.finding_part import FindingPart
from tallystick.domain.verdicts import Verdict

WORST_FIRST = tuple(reversed(Verdict))


@dataclass(frozen=True)
class Report:
    """One report; each frame is made when it is first asked for."""

    document: ReportDocument

    @cached_property
    def findings(self) -> pd.DataFrame:
        """One row for each finding, worst first; `evidence` and `waiver` are JSON."""
        frame = _frame(FindingPart, self.document.findings)
        for name in ("evidence", "waiver"):
            frame[name] = [
                None if each is None else json.dumps(each, sort_keys=True) for each in frame[name]
            ]
        return frame

    @cached_property
    def partitions(self) -> pd.DataFrame:
        """One row for each partition, worst first, then by lag; a column for each hole class."""
        frame = _frame(PartitionPart, self.document.partitions)
        for kind in HoleClass:
            frame[kind.value] = [each.holes.get(kind.value, 0) for each in self.document.partitions]
        for level in ("L1", "L2", "L3"):
            frame[f"checked_{level}"] = [
                to_plain(each.checked_at.get(level)) for each in self.document.partitions
            ]
        rank = {verdict.value: place for place, verdict in enumerate(WORST_FIRST)}
        frame["rank"] = frame["verdict"].map(rank)
        frame = frame.drop(columns=["holes", "checked_at", "gaps"])
        frame = frame.sort_values(["rank", "lag", "partition"], ascending=[True, False, True])
        return frame.drop(columns="rank").reset_index(drop=True)

    @cached_property
    def columns(self) -> pd.DataFrame:
        """One row for each column of the map: what was produced, landed, found without a record."""
        edges = self.document.coverage.edges
        frame = _frame(ColumnPart, self.document.columns)
        frame.insert(0, "until_instant", [to_plain(each) for each in edges[1:]])
        frame.insert(0, "from_instant", [to_plain(each) for each in edges[:-1]])
        for kind in HoleClass:
            frame[kind.value] = [each.holes.get(kind.value, 0) for each in self.document.columns]
        return frame.drop(columns="holes")

    @cached_property
    def coverage(self) -> pd.DataFrame:
        """One row for each cell of the map: block of partitions, column, verdict, count."""
        edges = [to_plain(each) for each in self.document.coverage.edges]
        rows = [
            (block.first_partition, block.last_partition, edges[place], edges[place + 1],
             verdict.value, count)
            for block in self.document.coverage.blocks
            for place, (verdict, count) in enumerate(
                zip(block.verdicts, block.counts, strict=True))
        ]  # fmt: skip
        names = ["first_partition", "last_partition", "from_instant", "until_instant", "verdict",
                 "partitions"]  # fmt: skip
        return pd.DataFrame(rows, columns=names)

    @cached_property
    def band(self) -> pd.DataFrame:
        """One row for each look: log start, frontier, last stable offset, high watermark."""
        return _frame(BandPart, self.document.band)

    @cached_property
    def ages(self) -> pd.DataFrame:
        """Batches by the time since they were read in full."""
        return _frame(AgePart, self.document.ages)


def _frame(kind: type, parts: Sequence[object]) -> pd.DataFrame:
    """The parts as rows; whole numbers stay whole where some are missing."""
    names = [each.name for each in fields(kind)]
    rows = [[to_plain(getattr(part, name)) for name in names] for part in parts]
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    return frame
