"""HDFS goes away, falls into safe mode, runs over a quota, or forbids: at every step."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import (
    ApplicationFailed,
    IngestionError,
    RenameOutcomeUnknown,
    StorageRefused,
    StorageUnavailable,
)
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.kafka_producers import messages, produce
from tests.support.landed_files import write_once
from tests.support.ledger_proxy import Cut, LedgerProxy
from tests.support.store_hdfs import Superuser
from tests.trouble.place import Place
from tests.trouble.scene import Before, NewScene, Runner, Scene

UNLIMITED = -1
ENTER, LEAVE = "ENTER", "LEAVE"


class Admin(Superuser):
    """The one who may do everything, over HTTP and in Spark's JVM: no other JVM is started."""

    def set_safe_mode(self, scene: Scene, action: str) -> None:
        jvm, java = scene.spark._jvm, scene.spark._jsc
        assert jvm is not None
        address = jvm.java.net.URI(scene.place.sandbox.hdfs.namenode.address)
        file_system = jvm.org.apache.hadoop.fs.FileSystem.get(address, java.hadoopConfiguration())
        file_system.setSafeMode(getattr(jvm.org.apache.hadoop.fs.SafeModeAction, action))


@pytest.fixture
def admin(place: Place) -> Admin:
    namenode = place.sandbox.hdfs.namenode
    return Admin(place.sandbox, namenode.web_url, namenode.address, getpass.getuser())


@pytest.fixture
def safe_mode(scene: Scene, admin: Admin) -> Iterator[Admin]:
    """Whoever entered it has left it afterwards."""
    yield admin
    admin.set_safe_mode(scene, LEAVE)


def tells_place(scene: Scene, error: IngestionError, step: str, *words: str) -> None:
    scene.tells(error, f"at {step}", "batch ", f"{scene.topic}-0 [0, {scene.count})", *words)


def test_hdfs_is_down_at_plan(scene: Scene) -> None:
    with scene.place.without_hdfs():
        error = scene.fails()
    assert type(error) is StorageUnavailable
    assert error.retry
    scene.tells(error, "at plan", f"{scene.root}/", "takes no connections")
    scene.recovers()


def test_hdfs_is_down_at_land(scene: Scene) -> None:
    with ExitStack() as outage:
        down = Before("begin_attempt", lambda: outage.enter_context(scene.place.without_hdfs()))
        error = scene.fails(ledger=down)
    assert type(error) is StorageUnavailable
    assert error.retry
    tells_place(scene, error, "land", f"{scene.root}/_staging", "takes no connections")
    scene.recovers()


def test_a_long_outage_takes_no_batch_apart(new_scene: NewScene) -> None:
    """A batch that fails twice is halved, to find the sick partition; here none is sick."""
    scene = new_scene(partitions=4)
    for partition in range(4):
        produce(scene.place.bootstrap_servers, scene.topic, messages(3), partition=partition)
    with scene.place.without_hdfs():
        errors = [scene.fails() for _ in range(2)]
    assert {type(each) for each in errors} == {StorageUnavailable}
    report = scene.landed()
    assert len(report.batches) == 1
    assert scene.rows() == scene.produced(dict.fromkeys(range(4), (0, 3)))


def test_hdfs_is_killed_under_spark(scene: Scene) -> None:
    hdfs = scene.place.sandbox.hdfs
    scene.environ = {**scene.environ, "HDFS_URL": hdfs.namenode.address}
    error = scene.fails(Runner(scene.spark, before=lambda plan: hdfs.kill()))
    hdfs.start()
    write_once(hdfs.namenode.web_url, "root")
    assert isinstance(error, ApplicationFailed)
    assert error.retry
    tells_place(scene, error, "land", f"{hdfs.home.ports['namenode']}")
    scene.recovers()


def test_hdfs_goes_down_before_the_proof(scene: Scene) -> None:
    gate = scene.place.webhdfs_gate
    error = scene.fails(Runner(scene.spark, after=lambda plan: gate.shut()))
    gate.open()
    assert type(error) is StorageUnavailable
    assert error.retry
    tells_place(scene, error, "verify", f"{scene.root}/_staging/", "takes no connections")
    assert scene.rows() == [], "nothing is shown that was not proven"
    scene.recovers()


def test_hdfs_goes_down_between_commit_and_publish(scene: Scene) -> None:
    gate = scene.place.webhdfs_gate
    error = scene.fails(store=Before("rename_exclusive", gate.shut))
    assert type(error) is StorageUnavailable
    assert error.retry
    tells_place(scene, error, "publish", f"{scene.root}/{scene.name}/gen=1/")
    error = scene.fails()
    assert type(error) is StorageUnavailable
    tells_place(scene, error, "publish")
    gate.open()
    assert scene.rows() == []
    assert [each.directory for each in scene.landed().batches] == [], "the finisher was first"
    scene.recovers()


def test_the_answer_to_a_rename_is_lost(scene: Scene) -> None:
    port = scene.place.sandbox.home.ports["namenode-http"]
    with LedgerProxy(port, marker=b"op=RENAME") as wire:

        def lose_the_answer() -> None:
            wire.cut = Cut.ANSWER

        through = {**scene.environ, "WEBHDFS_URL": f"http://127.0.0.1:{wire.port}"}
        scene.environ, usual = through, scene.environ
        error = scene.fails(store=Before("rename_exclusive", lose_the_answer))
        scene.environ = usual
    assert isinstance(error, RenameOutcomeUnknown)
    assert error.retry
    tells_place(scene, error, "publish", "it is unknown if", "Nothing was deleted")
    assert len(scene.rows()) == scene.count, "it has happened"
    scene.recovers()


def test_hdfs_goes_down_before_the_sweep_and_what_is_landed_is_told(scene: Scene) -> None:
    gate = scene.place.webhdfs_gate
    report = scene.land(store=Before("delete", gate.shut))
    gate.open()
    assert [each.directory is not None for each in report.batches] == [True]
    [error] = report.errors
    assert type(error) is StorageUnavailable
    scene.tells(error, "at sweep", "batch ", "_staging")
    scene.recovers()


def test_safe_mode_at_land(scene: Scene, safe_mode: Admin) -> None:
    safe_mode.set_safe_mode(scene, ENTER)
    error = scene.fails()
    safe_mode.set_safe_mode(scene, LEAVE)
    assert type(error) is StorageUnavailable
    assert error.retry
    tells_place(scene, error, "land", "safe mode")
    scene.recovers()


def test_safe_mode_under_spark(scene: Scene, safe_mode: Admin) -> None:
    runner = Runner(scene.spark, before=lambda plan: safe_mode.set_safe_mode(scene, ENTER))
    error = scene.fails(runner)
    safe_mode.set_safe_mode(scene, LEAVE)
    assert isinstance(error, ApplicationFailed)
    assert error.retry
    tells_place(scene, error, "land", "Name node is in safe mode")
    scene.recovers()


def test_safe_mode_at_verify(scene: Scene, safe_mode: Admin) -> None:
    runner = Runner(scene.spark, after=lambda plan: safe_mode.set_safe_mode(scene, ENTER))
    error = scene.fails(runner)
    safe_mode.set_safe_mode(scene, LEAVE)
    assert type(error) is StorageUnavailable
    assert error.retry
    tells_place(scene, error, "verify", "safe mode", "_tally.json")
    scene.recovers()


def test_over_the_name_quota_at_land(scene: Scene, admin: Admin) -> None:
    admin.make(scene.root)
    admin.limit_names(scene.root, 1)
    error = scene.fails()
    admin.limit_names(scene.root, UNLIMITED)
    assert isinstance(error, StorageRefused)
    assert not error.retry
    tells_place(scene, error, "land", "the name quota is used up", scene.root, "Correct")
    scene.recovers()


def test_over_the_space_quota_under_spark(scene: Scene, admin: Admin) -> None:
    runner = Runner(scene.spark, before=lambda plan: admin.limit_space(scene.root, 1 << 20))
    error = scene.fails(runner)
    assert isinstance(error, ApplicationFailed)
    tells_place(scene, error, "land", f"The DiskSpace quota of {scene.root} is exceeded")
    error = scene.fails()
    assert isinstance(error, StorageRefused), "seen before Spark is started for nothing"
    assert not error.retry
    tells_place(scene, error, "land", "the space quota is used up")
    admin.limit_space(scene.root, UNLIMITED)
    scene.recovers()


def test_over_the_name_quota_at_publish(scene: Scene, admin: Admin) -> None:
    shown = f"{scene.root}/{scene.name}"
    admin.make(scene.root)
    admin.make(shown)
    # Itself, and the probe with its file: a batch has more.
    admin.limit_names(shown, 3)
    error = scene.fails()
    assert isinstance(error, StorageRefused)
    assert not error.retry
    tells_place(scene, error, "publish", "the name quota is used up", shown, "Correct")
    scene.produce(5)
    staged = scene.staged()
    assert isinstance(scene.fails(), StorageRefused), "nothing is read before it is shown"
    assert (scene.rows(), scene.staged()) == ([], staged)
    found = scene.reconciled()
    assert found.verdict is Verdict.UNKNOWN
    [told] = found.findings
    assert (told.code, "the name quota is used up" in told.cause) == (
        FindingCode.UNFINISHED_BATCH,
        True,
    )
    admin.limit_names(shown, UNLIMITED)
    scene.recovers()


def test_over_the_name_quota_of_a_probe_nothing_is_read(scene: Scene, admin: Admin) -> None:
    shown = f"{scene.root}/{scene.name}"
    admin.make(scene.root)
    admin.make(shown)
    admin.limit_names(shown, 2)
    error = scene.fails()
    assert isinstance(error, StorageRefused)
    tells_place(scene, error, "land", "the name quota is used up", shown, "Correct")
    admin.limit_names(shown, UNLIMITED)
    scene.recovers()


def test_a_directory_that_may_not_be_written(scene: Scene, admin: Admin) -> None:
    admin.make(scene.root, mode="555")
    stranger = WebHdfsFileStore(
        NameNodes([scene.environ["WEBHDFS_URL"]], user="stranger"), scene.environ["HDFS_URL"]
    )
    error = scene.fails(store=stranger)
    stranger.close()
    assert isinstance(error, StorageRefused)
    assert not error.retry
    tells_place(scene, error, "land", "Permission denied: user=stranger", scene.root, "Correct")
    scene.recovers()
