"""What spark-submit is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretBytes

from tallystick.spark.application import LONGEST_SECONDS
from tallystick.spark.command import SubmitCommand, Work, landing_conf, submit_command
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_hook import HeardSubmitHook

LOCAL = SparkPlace("local[2,4]", jars=("/jars/a.jar", "/jars/b.jar"))
YARN = SparkPlace("yarn", deploy_mode="cluster")


def command(place: SparkPlace, *, has_secrets: bool = False, **conf: str) -> SubmitCommand:
    return submit_command(
        place,
        application="/app/land.py",
        work=Work("orders", "b1", "a1"),
        plan_uri="hdfs://nn/_staging/plan.json",
        feed_conf=conf,
        has_secrets=has_secrets,
        longest=timedelta(hours=6),
    )


def argv_of(command: SubmitCommand, directory: Path) -> list[str]:
    """What the program that the connection names is started with."""
    program, told = directory / "spark-submit", directory / "told"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\n')
    program.chmod(0o755)
    place = replace(command.place, spark_submit=str(program))
    hook = HeardSubmitHook(replace(command, place=place), lambda _: None)
    assert hook.run(directory, {}) == 0
    hook.close()
    return told.read_text().splitlines()


def test_spark_submit_is_told_everything_once(tmp_path: Path) -> None:
    argv = argv_of(command(LOCAL), tmp_path)

    told = {
        "--master": "local[2,4]",
        "--deploy-mode": "client",
        "--name": "tallystick orders b1 a1",
        "--py-files": "tallystick.zip",
        "--jars": "/jars/a.jar,/jars/b.jar",
    }
    assert {each: argv[argv.index(each) + 1] for each in told} == told
    assert [argv.count(each) for each in told] == [1] * len(told)
    assert argv[-2:] == ["/app/land.py", "hdfs://nn/_staging/plan.json"]
    assert "--files" not in argv


@pytest.mark.parametrize(
    ("place", "has_secrets", "expected"),
    [
        (LOCAL, False, None),
        (LOCAL, True, None),
        (YARN, False, None),
        (YARN, True, "tallystick-kafka.properties"),
    ],
)
def test_the_secrets_file_is_shipped_where_other_machines_need_it(
    place: SparkPlace, has_secrets: bool, expected: str | None
) -> None:
    assert command(place, has_secrets=has_secrets).files == expected


def test_a_driver_in_a_cluster_is_told_to_end_itself_and_is_started_once() -> None:
    bounds = {
        LONGEST_SECONDS: "21600.0",
        "spark.yarn.maxAppAttempts": "1",
        "spark.yarn.submit.waitAppCompletion": "true",
        "spark.kubernetes.submission.waitAppCompletion": "true",
    }

    assert command(YARN, **{"spark.yarn.maxAppAttempts": "2"}).conf.items() >= bounds.items()
    assert not bounds.keys() & command(LOCAL).conf.keys()


def test_yarn_finds_an_application_by_the_id_of_its_attempt() -> None:
    assert command(YARN).conf["spark.yarn.tags"] == "tallystick-a1"
    tagged = command(YARN, **{"spark.yarn.tags": "etl,nightly"}).conf
    assert tagged["spark.yarn.tags"] == "etl,nightly,tallystick-a1"
    assert "spark.yarn.tags" not in command(LOCAL).conf


def test_the_feed_goes_over_the_connection_and_the_connection_over_the_defaults() -> None:
    place = replace(YARN, conf={"spark.ui.port": "1", "spark.a": "connection", "spark.b": "b"})

    conf = landing_conf(place, {"spark.a": "feed"})

    assert (conf["spark.ui.port"], conf["spark.a"], conf["spark.b"]) == ("1", "feed", "b")


def test_speculation_stays_off_and_redaction_on_whatever_anybody_says() -> None:
    place = replace(YARN, conf={"spark.speculation": "true", "spark.redaction.regex": "x"})

    conf = landing_conf(place, {"spark.speculation": "true"})

    assert conf["spark.speculation"] == "false"
    assert "password" in conf["spark.redaction.regex"]


@pytest.mark.parametrize(
    "key", ["spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"]
)
def test_java_options_of_all_sides_are_joined(key: str) -> None:
    conf = landing_conf(replace(LOCAL, conf={key: "-Da=1"}), {key: "-Db=2"})

    assert conf[key] == "-Duser.timezone=UTC -Da=1 -Db=2"


def test_on_one_machine_nothing_listens_for_others() -> None:
    conf = landing_conf(LOCAL, {})

    assert conf["spark.driver.bindAddress"] == conf["spark.driver.host"] == "127.0.0.1"
    assert conf["spark.ui.enabled"] == "false"
    assert LOCAL.environment({}) == {"SPARK_LOCAL_IP": "127.0.0.1"}


def test_on_a_cluster_addresses_are_the_clusters() -> None:
    conf = landing_conf(YARN, {})

    assert not [key for key in conf if key.startswith("spark.driver.") and "Java" not in key]
    assert "spark.ui.enabled" not in conf
    assert YARN.environment({}) == {}


def test_the_user_that_writes_is_told_to_hadoop() -> None:
    place = replace(YARN, hadoop_user="etl")

    assert place.environment({}) == {"HADOOP_USER_NAME": "etl"}


def test_spark_logs_in_by_keytab_if_the_connection_has_one(tmp_path: Path) -> None:
    place = replace(YARN, principal="ada@EXAMPLE.COM", keytab="/etc/ada.keytab")
    argv = argv_of(command(place), tmp_path)
    assert argv[argv.index("--principal") + 1] == "ada@EXAMPLE.COM"
    assert argv[argv.index("--keytab") + 1] == "/etc/ada.keytab"
    assert "--keytab" not in argv_of(command(YARN), tmp_path)


def test_keys_of_the_connection_itself_lie_in_a_private_file(tmp_path: Path) -> None:
    place = replace(YARN, principal="ada@EXAMPLE.COM", keys=SecretBytes(b"the keys"))

    found = place.with_keytab_in(tmp_path)

    assert found.keytab is not None
    assert Path(found.keytab).read_bytes() == b"the keys"
    assert Path(found.keytab).stat().st_mode & 0o777 == 0o600
    assert found.login() == ["--principal", "ada@EXAMPLE.COM", "--keytab", found.keytab]


def test_partitions_that_were_read_are_not_kept_in_memory_unless_somebody_says_so() -> None:
    kept = "spark.kafka.consumer.fetchedData.cache.timeout"

    assert landing_conf(LOCAL, {})[kept] == "1s"
    assert landing_conf(LOCAL, {kept: "1m"})[kept] == "1m"
