"""The ledger goes away at every step: what the run says, and that the next one makes all good."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import (
    CommitOutcomeUnknown,
    IngestionError,
    LedgerRefused,
    LedgerUnavailable,
    SchemaOutOfDate,
)
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tests.support.ledger_proxy import Cut, LedgerProxy
from tests.support.ledger_server import LedgerServer
from tests.trouble.scene import Before, Runner, Scene


def tells_where(scene: Scene, error: IngestionError, step: str, *words: str) -> None:
    assert isinstance(error, LedgerUnavailable)
    assert error.retry
    scene.tells(error, f"at {step}", "Check the database", *words)


def test_the_ledger_is_down_before_anything(scene: Scene) -> None:
    address = f"port {scene.place.ledger_gate.port} failed"
    with scene.place.ledger_gate.closed():
        tells_where(scene, scene.fails(), "finish", address)
        with scene.services() as services:
            with pytest.raises(LedgerUnavailable) as caught:
                dry_run(services, None)
            tells_where(scene, caught.value, "plan", address)
        with pytest.raises(LedgerUnavailable) as caught:
            scene.reconciled()
        tells_where(scene, caught.value, "reconcile", address)
    scene.recovers()


def test_the_ledger_goes_down_within_the_plan_s_transaction(scene: Scene) -> None:
    gate = scene.place.ledger_gate
    error = scene.fails(broker=Before("snapshot", gate.shut))
    gate.open()
    tells_where(scene, error, "plan")
    with scene.services() as services:
        assert services.ledger.batches(services.feed_name) == [], "the server has undone it all"
    scene.recovers()


def test_the_ledger_goes_down_at_land(scene: Scene) -> None:
    gate = scene.place.ledger_gate
    error = scene.fails(ledger=Before("begin_attempt", gate.shut))
    gate.open()
    tells_where(scene, error, "land", "batch ")
    scene.recovers()


def test_the_ledger_goes_down_while_spark_works(scene: Scene) -> None:
    gate = scene.place.ledger_gate
    error = scene.fails(ledger=Before("record_application", gate.shut))
    gate.open()
    tells_where(scene, error, "verify", "batch ")
    scene.recovers()


@pytest.mark.parametrize("verb", ["take_up", "record_verified", "commit"])
def test_the_ledger_goes_down_at_verify(scene: Scene, verb: str) -> None:
    gate = scene.place.ledger_gate
    error = scene.fails(ledger=Before(verb, gate.shut))
    gate.open()
    ranges = [] if verb == "take_up" else [f"{scene.topic}-0 [0, 10)"]
    tells_where(scene, error, "verify", "batch ", *ranges)
    assert scene.rows() == []
    scene.let_leases_run_out()
    scene.recovers()


def test_the_ledger_goes_down_after_the_rename(scene: Scene) -> None:
    gate = scene.place.ledger_gate
    error = scene.fails(ledger=Before("mark_published", gate.shut))
    gate.open()
    tells_where(scene, error, "publish", "batch ", f"{scene.topic}-0 [0, 10)", "nothing is lost")
    assert len(scene.rows()) == scene.count, "readers have it all the same"
    scene.recovers()


@pytest.mark.parametrize(
    ("verb", "step"), [("mark_swept", "sweep"), ("record_findings", "the second reader")]
)
def test_the_ledger_goes_down_at_the_end_and_what_is_landed_is_told(
    scene: Scene, verb: str, step: str
) -> None:
    gate = scene.place.ledger_gate
    report = scene.land(ledger=Before(verb, gate.shut))
    gate.open()
    assert [each.directory is not None for each in report.batches] == [True]
    tells_where(scene, report.errors[0], step)
    scene.recovers()


@pytest.mark.parametrize("cut", [Cut.REQUEST, Cut.ANSWER], ids=["not committed", "committed"])
def test_the_connection_dies_at_the_commit(
    scene: Scene, ledger_server: LedgerServer, ledger_database: str, cut: Cut
) -> None:
    with LedgerProxy(ledger_server.port) as wire:

        def cut_off() -> None:
            wire.cut = cut

        dsn = ledger_server.dsn(ledger_database, port=wire.port)
        scene.environ, usual = {**scene.environ, "LEDGER_DSN": dsn}, scene.environ
        # The heartbeat commits too, four times in a lease, and is to be out of the way.
        error = scene.fails(ledger=Before("commit", cut_off), lease=timedelta(minutes=10))
        scene.environ = usual
    assert isinstance(error, CommitOutcomeUnknown)
    assert error.retry
    scene.tells(error, "at verify", "batch ", f"{scene.topic}-0 [0, 10)", "unknown if attempt ")
    assert scene.rows() == []
    if cut is Cut.REQUEST:
        scene.let_leases_run_out()
    scene.recovers()


def test_a_passing_fault_of_the_ledger_is_borne_while_spark_works(scene: Scene) -> None:
    """The connection breaks and the heartbeat fails; nobody has to run anything again."""
    gate = scene.place.ledger_gate

    def interrupt(plan: object) -> None:
        gate.shut()
        gate.open()

    scene.landed(Runner(scene.spark, before=interrupt))
    assert len(scene.rows()) == scene.count
    scene.recovers()


def test_the_next_run_says_whom_it_leaves_a_batch_to(scene: Scene) -> None:
    with scene.services(lease=timedelta(minutes=10)) as services:
        dead = plan_feed(services, None, Owner("a run that died"))
    [batch] = dead.batches
    report = scene.landed()
    [held] = report.plan.held
    assert (held.plan.batch_id, held.holder) == (batch.batch_id, "a run that died")
    assert 0 < held.lease_seconds_left <= 600
    with scene.services() as services:
        assert [each.plan.batch_id for each in dry_run(services, None).held] == [batch.batch_id]
        again = plan_feed(services, None, Owner("a run that died"))
    assert [each.batch_id for each in again.adopted] == [batch.batch_id], "a retry need not wait"
    scene.recovers()


def test_a_ledger_that_was_never_migrated(scene: Scene, ledger_server: LedgerServer) -> None:
    ledger_server.create("blank")
    dsn = ledger_server.dsn("blank")
    scene.environ, usual = {**scene.environ, "LEDGER_DSN": dsn}, scene.environ
    error = scene.fails()
    scene.environ = usual
    ledger_server.drop("blank")
    assert isinstance(error, SchemaOutOfDate)
    assert not error.retry
    scene.tells(error, "the ledger has schema 0", "tallystick ledger migrate")


def test_a_ledger_that_forbids(
    scene: Scene, ledger_server: LedgerServer, ledger_database: str
) -> None:
    forbid = "REVOKE INSERT ON attempt FROM tallystick"
    ledger_server.execute(ledger_database, forbid)
    error = scene.fails()
    ledger_server.execute(ledger_database, forbid.replace("REVOKE", "GRANT").replace("FROM", "TO"))
    assert isinstance(error, LedgerRefused)
    assert not error.retry
    scene.tells(error, "at land", "batch ", "permission denied for table attempt")
    scene.recovers()
