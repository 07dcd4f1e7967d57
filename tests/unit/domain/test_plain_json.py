"""What documents are made of, as JSON and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.plain_json import from_line, from_plain, to_line, to_plain
from tallystick.domain.repair.plan import StorageSteps


@dataclass(frozen=True)
class Measured:
    pair: tuple[int, str] = (1, "a")
    sizes: tuple[float, ...] = ()
    offsets: OffsetRuns = field(default_factory=OffsetRuns)


@pytest.mark.parametrize(
    "value",
    [Measured(), Measured((2**70, ""), (0.5, 1.0), OffsetRuns.of([(0, 3), (9, 2**63 - 1)]))],
)
def test_a_value_is_read_again_as_it_was_written(value: Measured) -> None:
    assert from_plain(Measured, to_plain(value)) == value
    line = to_line("measured-1", value)
    assert from_line(Measured, "measured-1", line) == value
    assert "\n" not in line


@settings(max_examples=50, derandomize=True)
@given(st.from_type(StorageSteps))
def test_what_one_task_of_a_repair_hands_to_another_comes_back_equal(steps: StorageSteps) -> None:
    assert from_plain(StorageSteps, json.loads(json.dumps(to_plain(steps)))) == steps


def test_a_named_kind_of_text_is_read_as_text() -> None:
    file = CommittedFile(BatchId("b"), "f.parquet")

    assert from_plain(CommittedFile, to_plain(file)) == file


@pytest.mark.parametrize(
    "plain",
    [
        {"pair": [1]},
        {"pair": [1, "a", "b"]},
        {"pair": ["a", 1]},
        {"pair": None},
        {"sizes": ["1"]},
        {"offsets": [[0]]},
        {"offsets": [[0, 0.5]]},
        {"offsets": [[0, 2**63]]},
        [],
    ],
)
def test_what_does_not_fit_is_refused(plain: object) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its words are Python's
        from_plain(Measured, plain)


@pytest.mark.parametrize("text", ['{"format": "measured-2"}', "{}", "[]", "7"])
def test_a_line_of_another_format_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no Measured: format"):
        from_line(Measured, "measured-1", text)
