"""A partition's directory is put back as it had been, and producers go on: the log is another one.

The same happens at an unclean leader election. It is done here to a real broker, between two steps
of a run; `tests/workflows/committing/test_same_log.py` goes through all the others.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import SourceChanged
from tests.trouble.scene import Before, Scene


def test_a_log_that_is_put_back_between_plan_and_landing_is_noticed(
    scene: Scene, tmp_path: Path
) -> None:
    kafka, saved = scene.place.kafka, tmp_path / "saved"
    directory = kafka.folder / "data" / f"{scene.topic}-0"
    scene.land()
    scene.produce(5)
    shutil.copytree(directory, saved)
    scene.produce(15)

    def put_back() -> None:
        kafka.kill()
        shutil.rmtree(directory)
        shutil.copytree(saved, directory)
        kafka.start()
        scene.produce(100)

    error = scene.fails(ledger=Before("begin_attempt", put_back))
    assert isinstance(error, SourceChanged)
    scene.tells(error, "at land", f"{scene.topic}-0 [10, 30)", "the log was cut", "at 15")

    report = scene.land()
    [found] = [each for each in report.findings if each.code is FindingCode.LOG_CUT]
    assert (found.from_offset, found.until_offset) == (15, 30)
    assert scene.reconciled().verdict is Verdict.PROVEN_LOSS
    assert len(scene.rows()) == 10, "of the new log nothing is landed before a person says so"
