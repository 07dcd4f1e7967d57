"""Reconcile on real services that go away under it, or forbid half of the listing."""

from __future__ import annotations

import getpass
from collections.abc import Iterable

import pytest

from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tallystick.errors import LedgerUnavailable
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.store_hdfs import Superuser
from tests.trouble.scene import AWAY_SECONDS, Before, Scene


def told(findings: Iterable[Finding]) -> set[tuple[str, Verdict]]:
    return {(each.code.value, each.verdict) for each in findings}


def reconciled(scene: Scene, **changes: object) -> ReconcileReport:
    with scene.services(**changes) as services:  # type: ignore[arg-type]
        return reconcile(services)


@pytest.mark.parametrize("verb", ["snapshot", "records_at"])
def test_kafka_goes_away(scene: Scene, verb: str) -> None:
    scene.recovers()
    scene.patience_seconds = AWAY_SECONDS
    gate = scene.place.kafka_gate
    report = reconciled(scene, broker=Before(verb, gate.shut))
    gate.open()
    assert told(report.findings) == {("U1", Verdict.UNKNOWN)}
    assert "did not answer" in report.findings[0].cause
    assert reconciled(scene).verdict is Verdict.PROVEN_OK


def make_due(scene: Scene) -> None:
    """Every file is to be asked again."""
    with scene.services() as services:
        directories = services.ledger.directories(services.feed_name)
        services.ledger.note_directory_looks(
            {}, [each.batch_id for each in directories], compared_at=services.ledger.clock()
        )


@pytest.mark.parametrize("verb", ["entries", "checksum"])
def test_hdfs_goes_away(scene: Scene, verb: str) -> None:
    scene.recovers()
    make_due(scene)
    gate = scene.place.webhdfs_gate
    report = reconciled(scene, store=Before(verb, gate.shut))
    gate.open()
    assert told(report.findings) == {("U1", Verdict.UNKNOWN)}
    assert reconciled(scene).verdict is Verdict.PROVEN_OK


def test_half_of_the_listing_is_refused(scene: Scene) -> None:
    scene.recovers()
    [generation] = [f"{scene.root}/{scene.name}/gen=1"]
    namenode = scene.place.sandbox.hdfs.namenode
    admin = Superuser(scene.place.sandbox, namenode.web_url, namenode.address, getpass.getuser())
    [day] = scene._names(generation)
    admin.make(f"{generation}/{day}", mode="700")
    stranger = WebHdfsFileStore(
        NameNodes([scene.environ["WEBHDFS_URL"]], user="stranger"), scene.environ["HDFS_URL"]
    )
    report = reconciled(scene, store=stranger)
    stranger.close()
    assert told(report.findings) == {("U1", Verdict.UNKNOWN)}
    assert "Permission denied" in report.findings[0].cause
    assert not report.is_complete
    admin.make(f"{generation}/{day}", mode="755")
    assert reconciled(scene).verdict is Verdict.PROVEN_OK


def test_the_ledger_goes_away(scene: Scene) -> None:
    scene.recovers()
    gate = scene.place.ledger_gate
    with pytest.raises(LedgerUnavailable):
        reconciled(scene, ledger=Before("record_findings", gate.shut))
    gate.open()
    assert reconciled(scene).verdict is Verdict.PROVEN_OK
