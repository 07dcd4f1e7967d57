"""Feed files, good and bad: the exact words for everything that is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tallystick.errors import ConfigurationError, FeedFileInvalid
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import DEFAULT_FOLDER, feeds_folder, load_feed, read_feeds
from tests.support.repository import said_by_new_python

MINIMAL = """\
feed: orders
source: {topic: orders}
schedule: {cron: "0 * * * *", start_date: 2026-11-01}
target: {root: /data/landing}
"""
FULL = """\
feed: orders
source:
  connection: kafka_default
  topic: orders
  isolation: read_committed
  start: earliest
schedule:
  cron: "0 * * * *"
  timezone: UTC
  start_date: 2026-11-01
plan:
  until: now
  max_records_per_run: 50_000_000
  max_records_per_batch: 10_000_000
  max_partitions_per_batch: 500
target:
  connection: webhdfs_default
  root: /data/landing
  compression: zstd
spark:
  connection: spark_default
  conf: {}
reconcile:
  cron: "30 * * * *"
  scrub_every: 7d
  scrub_budget: 50GB
  warn_time_to_loss: 6h
"""
TOPIC = "a Kafka topic: 1 to 249 of a-z, A-Z, 0-9, '.', '_', '-'"
NAME = "1 to 200 of a-z, 0-9, '_', '-', beginning with a letter"
START = "earliest, latest, or an instant such as 2026-11-01T00:00:00Z"
CRON = 'a cron expression of five fields, in quotes ("0 * * * *"), or @hourly, @daily ...'
START_DATE = "a date such as 2026-11-01, or an instant such as 2026-11-01T06:00:00Z"
ROOT = (
    "an absolute HDFS directory such as /data/landing; its parts hold a-z, A-Z, 0-9"
    " and . _ - = + @ , and begin with a letter or digit"
)
COUNT = "a whole number above 0"
SIZE = "a size such as 500MB, 50GB, 2TB"
LENGTH = "a length of time such as 90s, 6h, 7d"
WHOLE = "a mapping of keys, as in dags/feeds/orders.yaml"
LEVEL = "a whole number from 1 to 22, with zstd only"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    found = tmp_path / "feeds"
    found.mkdir()
    return found


def problems_in(folder: Path, content: str | bytes, name: str = "orders.yaml") -> list[str]:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(data)
    return [str(each) for each in read_feeds(folder).problems]


def feed_of(folder: Path, content: str) -> Feed:
    (folder / "orders.yaml").write_text(content)
    return load_feed(folder, "orders")


def test_the_design_s_file_is_read_and_what_it_says_are_the_defaults(folder: Path) -> None:
    full, minimal = feed_of(folder, FULL), feed_of(folder, MINIMAL)
    assert full == minimal
    assert full.name == "orders"
    assert full.source.start == "earliest"
    assert full.schedule.start_date == datetime(2026, 11, 1, tzinfo=UTC)
    assert full.plan.max_records_per_run == 50_000_000
    assert full.plan.max_records_per_batch == 10_000_000
    assert full.plan.max_partitions_per_batch == 500
    assert (full.target.compression, full.target.compression_level) == ("zstd", 1)
    assert (full.target.replication, full.target.target_file_bytes) == (None, 256 << 20)
    assert full.spark.max_application_time == timedelta(hours=6)
    assert full.reconcile.scrub_every == timedelta(days=7)
    assert full.reconcile.scrub_budget == 50_000_000_000
    assert full.reconcile.warn_time_to_loss == timedelta(hours=6)


def test_the_sample_feeds_are_right() -> None:
    feeds = read_feeds(DEFAULT_FOLDER).feeds
    assert feeds.keys() >= {"clicks", "orders"}  # others may have been added
    assert feeds["orders"].source.isolation == "read_committed"
    assert feeds["clicks"].source.isolation == "read_uncommitted"


REPLACED = [
    # (id, text of the full file, replaced by, the problem after "feeds/orders.yaml")
    ("unknown key, near", "topic: orders", "topci: orders\n  topic: orders",
     ":4: source.topci: unknown key; nearest known key: topic"),
    ("unknown key, far", "topic: orders", "topic: orders\n  zzz: 1",
     ":5: source.zzz: unknown key; accepted: connection, isolation, start, export_group, topic"),
    ("unknown key never shows its value", "topic: orders", "topic: orders\n  password: hunter2",
     ":5: source.password: unknown key;"
     " accepted: connection, isolation, start, export_group, topic"),
    ("unknown section", "plan:", "plam:",
     ":11: plam: unknown key; nearest known key: plan"),
    ("merge key", "topic: orders", "<<: {topic: orders}\n  topic: orders",
     ":4: source.<<: unknown key; accepted: connection, isolation, start, export_group, topic"),
    ("missing key", "  topic: orders\n", "",
     f":2: source.topic: missing; accepted: {TOPIC}"),
    ("until", "until: now", "until: noww",
     ":12: plan.until: 'noww' is not accepted; accepted: now, window_end"),
    ("isolation", "read_committed", "serializable",
     ":5: source.isolation: 'serializable' is not accepted;"
     " accepted: read_committed, read_uncommitted"),
    ("no text", "topic: orders", "topic: 123",
     ":4: source.topic: 123 is not accepted: it does not read as text, put it in quotes;"
     f" accepted: {TOPIC}"),
    ("no text either", "topic: orders", "topic: on",
     ":4: source.topic: on is not accepted: it does not read as text, put it in quotes;"
     f" accepted: {TOPIC}"),
    ("nothing", "topic: orders", "topic:",
     ":4: source.topic: nothing is not accepted: it does not read as text, put it in quotes;"
     f" accepted: {TOPIC}"),
    ("a list", "topic: orders", "topic: [orders]",
     f":4: source.topic: a list is not accepted; accepted: {TOPIC}"),
    ("topic with a slash", "topic: orders", "topic: a/b",
     f":4: source.topic: 'a/b' is not accepted; accepted: {TOPIC}"),
    ("topic ..", "topic: orders", "topic: ..",
     f":4: source.topic: '..' is not accepted; accepted: {TOPIC}"),
    ("topic too long", "topic: orders", "topic: " + "x" * 250,
     f":4: source.topic: '{'x' * 77}...' is not accepted; accepted: {TOPIC}"),
    ("connection id", "kafka_default", "kafka/default",
     ":3: source.connection: 'kafka/default' is not accepted;"
     " accepted: an Airflow connection id: letters, digits and _"),
    ("start", "start: earliest", "start: first",
     f":6: source.start: 'first' is not accepted; accepted: {START}"),
    ("start without offset", "start: earliest", "start: 2026-11-01 10:00:00",
     ":6: source.start: 2026-11-01 10:00:00 is not accepted:"
     f" it has no offset from UTC (write Z or +01:00); accepted: {START}"),
    ("start on no day", "start: earliest", "start: 2026-13-45",
     f":6: source.start: '2026-13-45' is not accepted; accepted: {START}"),
    ("start before year 1", "start: earliest", "start: 0001-01-01T00:00:00+01:00",
     ":6: source.start: 0001-01-01T00:00:00+01:00 is not accepted:"
     f" it is outside of the years 1 to 9999; accepted: {START}"),
    ("cron out of range", '"0 * * * *"', '"61 * * * *"',
     ":8: schedule.cron: '61 * * * *' is not accepted: its minute '61' is not possible;"
     f" accepted: {CRON}"),
    ("cron with seconds", '"0 * * * *"', '"* * * * * *"',
     ":8: schedule.cron: '* * * * * *' is not accepted: it has not five fields;"
     f" accepted: {CRON}"),
    ("cron of a preset that Airflow lacks", '"0 * * * *"', '"@reboot"',
     ":8: schedule.cron: '@reboot' is not accepted: it has not five fields;"
     f" accepted: {CRON}"),
    ("cron that never comes", '"0 * * * *"', '"0 0 30 2 *"',
     ":8: schedule.cron: '0 0 30 2 *' is not accepted: it never comes true;"
     f" accepted: {CRON}"),
    ("time zone", "timezone: UTC", "timezone: Mars/Olympus",
     ":9: schedule.timezone: 'Mars/Olympus' is not accepted;"
     " accepted: a time zone's name such as UTC or Europe/Berlin"),
    ("time zone as a path", "timezone: UTC", "timezone: ../../etc/passwd",
     ":9: schedule.timezone: '../../etc/passwd' is not accepted;"
     " accepted: a time zone's name such as UTC or Europe/Berlin"),
    ("start_date", "start_date: 2026-11-01", "start_date: soon",
     f":10: schedule.start_date: 'soon' is not accepted; accepted: {START_DATE}"),
    ("zero", "50_000_000", "0",
     f":13: plan.max_records_per_run: 0 is not accepted; accepted: {COUNT}"),
    ("a fraction", "50_000_000", "1.5",
     f":13: plan.max_records_per_run: 1.5 is not accepted; accepted: {COUNT}"),
    ("a truth value", "50_000_000", "yes",
     f":13: plan.max_records_per_run: yes is not accepted; accepted: {COUNT}"),
    ("a number in quotes", "50_000_000", '"50"',
     f":13: plan.max_records_per_run: '50' is not accepted; accepted: {COUNT}"),
    ("too many", "50_000_000", "9_223_372_036_854_775_808",
     ":13: plan.max_records_per_run: 9_223_372_036_854_775_808 is not accepted;"
     f" accepted: {COUNT}"),
    ("root with a scheme", "root: /data/landing", "root: hdfs://h:8020/data",
     ":18: target.root: 'hdfs://h:8020/data' is not accepted:"
     f" the file system belongs into the connection, give the path alone; accepted: {ROOT}"),
    ("root with a colon", "root: /data/landing", "root: /data/12:00",
     f":18: target.root: '/data/12:00' is not accepted: the part '12:00' is not possible;"
     f" accepted: {ROOT}"),
    ("root with ..", "root: /data/landing", "root: /data/../landing",
     f":18: target.root: '/data/../landing' is not accepted: the part '..' is not possible;"
     f" accepted: {ROOT}"),
    ("root that readers skip", "root: /data/landing", "root: /data/_landing",
     f":18: target.root: '/data/_landing' is not accepted: the part '_landing' is not possible;"
     f" accepted: {ROOT}"),
    ("root that is a pattern", "root: /data/landing", 'root: "/data/{a,b}"',
     f":18: target.root: '/data/{{a,b}}' is not accepted: the part '{{a,b}}' is not possible;"
     f" accepted: {ROOT}"),
    ("relative root", "root: /data/landing", "root: data/landing",
     f":18: target.root: 'data/landing' is not accepted; accepted: {ROOT}"),
    ("the whole file system", "root: /data/landing", "root: //",
     f":18: target.root: '//' is not accepted; accepted: {ROOT}"),
    ("gzip", "compression: zstd", "compression: gzip",
     ":19: target.compression: 'gzip' is not accepted; accepted: zstd, snappy, lz4_raw, none"),
    ("level too high", "compression: zstd", "compression: zstd\n  compression_level: 23",
     f":20: target.compression_level: 23 is not accepted; accepted: {LEVEL}"),
    ("level without levels", "compression: zstd", "compression: snappy\n  compression_level: 3",
     f":20: target.compression_level: 3 is not accepted: snappy has no levels; accepted: {LEVEL}"),
    ("replication", "compression: zstd", "replication: 0",
     ":19: target.replication: 0 is not accepted; accepted: a whole number from 1 to 512"),
    ("a section that is none", "spark:\n  connection: spark_default\n  conf: {}", "spark: local",
     ":20: spark: 'local' is not accepted; accepted: a section of keys"),
    ("conf that is none", "conf: {}", "conf: [a]",
     ":22: spark.conf: a list is not accepted;"
     " accepted: Spark properties, each a name and a value"),
    ("conf of no property", "conf: {}", "conf: {executor.memory: 4g}",
     ":22: spark.conf.executor.memory: '4g' is not accepted:"
     " no Spark property: it must begin with spark."),
    ("conf that breaks the promise", "conf: {}", "conf: {spark.speculation: true}",
     ":22: spark.conf.spark.speculation: 'true' is not accepted:"
     " two copies of one task may both write"),
    ("conf that has a key of its own", "conf: {}", "conf: {spark.hadoop.dfs.replication: 2}",
     ":22: spark.conf.spark.hadoop.dfs.replication: '2' is not accepted: set target.replication"),
    ("conf with a family", "conf: {}", "conf: {spark.jars.packages: a:b:1}",
     ":22: spark.conf.spark.jars.packages: 'a:b:1' is not accepted:"
     " resolving at run time makes every start depend on the network"),
    ("conf that keeps secrets", "conf: {}", "conf: {spark.yarn.preserve.staging.files: true}",
     ":22: spark.conf.spark.yarn.preserve.staging.files: 'true' is not accepted:"
     " Kafka's secrets would stay in HDFS"),
    ("conf with a secret", "conf: {}", "conf: {spark.ssl.keyPassword: hunter2}",
     ":22: spark.conf.spark.ssl.keyPassword: '***' is not accepted:"
     " it looks like a secret, which would show in ps, the log and the Spark UI"),
    ("conf with a secret inside", "conf: {}",
     'conf: {spark.driver.extraJavaOptions: "-Da.password=hunter2"}',
     ":22: spark.conf.spark.driver.extraJavaOptions: '***' is not accepted:"
     " it looks like a secret, which would show in ps, the log and the Spark UI"),
    ("conf of nothing", "conf: {}", "conf: {spark.executor.memory: }",
     ":22: spark.conf.spark.executor.memory: nothing is not accepted:"
     " it does not read as text, put it in quotes"),
    ("duration", "scrub_every: 7d", "scrub_every: 7 days",
     f":25: reconcile.scrub_every: '7 days' is not accepted; accepted: {LENGTH}"),
    ("duration without unit", "scrub_every: 7d", "scrub_every: 7",
     f":25: reconcile.scrub_every: 7 is not accepted; accepted: {LENGTH}"),
    ("duration in base sixty", "scrub_every: 7d", "scrub_every: 1:30",
     f":25: reconcile.scrub_every: 1:30 is not accepted; accepted: {LENGTH}"),
    ("duration of zero", "scrub_every: 7d", "scrub_every: 0h",
     f":25: reconcile.scrub_every: '0h' is not accepted: it is zero; accepted: {LENGTH}"),
    ("duration of ages", "scrub_every: 7d", "scrub_every: 99999999999w",
     ":25: reconcile.scrub_every: '99999999999w' is not accepted: it is too long;"
     f" accepted: {LENGTH}"),
    ("duration or nothing", "scrub_every: 7d", "payload_horizon: 7 days",
     f":25: reconcile.payload_horizon: '7 days' is not accepted; accepted: {LENGTH}"),
    ("item of a list", "scrub_every: 7d", "fail_on: [UNKNOWN, LOSS]",
     ":25: reconcile.fail_on.1: 'LOSS' is not accepted;"
     " accepted: SUSPECTED, UNKNOWN, PROVEN_DUP, PROVEN_LOSS, in a list"),
    ("size", "scrub_budget: 50GB", "scrub_budget: 50 GiB",
     f":26: reconcile.scrub_budget: '50 GiB' is not accepted; accepted: {SIZE}"),
    ("size of nothing", "scrub_budget: 50GB", "scrub_budget: 0GB",
     f":26: reconcile.scrub_budget: '0GB' is not accepted: it is zero; accepted: {SIZE}"),
    ("feed name", "feed: orders", "feed: Orders!",
     f":1: feed: 'Orders!' is not accepted; accepted: {NAME}"),
    ("another feed's name", "feed: orders", "feed: clicks",
     ":1: feed: 'clicks' is not accepted: a feed bears its file's name; accepted: orders"),
    ("given twice", "  topic: orders\n", "  topic: orders\n  topic: orders\n",
     ":5: source.topic: given twice, first on line 4"),
    ("anchor used again", "source:\n", "source: &a\n  <<: *a\n",
     ":3: source.<<: an anchor that is used again is not accepted: write it out"),
    ("tag", "topic: orders", "topic: !!python/name:os.system orders",
     ":4: source.topic: the tag 'tag:yaml.org,2002:python/name:os.system' is not accepted"),
    ("tab", "  topic: orders", "\ttopic: orders",
     ":4: it is no YAML: found a tab character that violates indentation"),
    ("cron without quotes", 'cron: "0 * * * *"', "cron: * * * * *",
     ":8: it is no YAML: did not find expected alphabetic or numeric character"
     " (a value that begins with * needs quotes)"),
    ("two documents", "spark:", "---\nspark:",
     ":20: it is no YAML: but found another document"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "problem"), [row[1:] for row in REPLACED], ids=[row[0] for row in REPLACED]
)
def test_a_wrong_line_is_told_in_exactly_these_words(
    folder: Path, old: str, new: str, problem: str
) -> None:
    assert old in FULL
    assert problems_in(folder, FULL.replace(old, new, 1)) == [f"feeds/orders.yaml{problem}"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", ":1: it is empty"),
        (b"# only a comment\n", ":1: it is empty"),
        (b"feed: orders\nsource: \xff\n", ":2: it is not UTF-8"),
        (b"feed: orders\n\n: \x01\n", ":3: it is no YAML: control characters are not allowed"),
        (b"[1, 2]", f":1: a list is not accepted; accepted: {WHOLE}"),
        (b"[" * 100_000, ":1: it is nested too deeply"),
    ],
    ids=["empty", "comment", "latin-1", "control character", "list", "deep"],
)  # fmt: skip
def test_a_file_that_is_no_feed_at_all(folder: Path, content: bytes, problem: str) -> None:
    assert problems_in(folder, content) == [f"feeds/orders.yaml{problem}"]


def test_all_problems_of_all_files_are_told_at_once(folder: Path) -> None:
    (folder / "a.yaml").write_text(MINIMAL.replace("feed: orders", "feed: a"))
    (folder / "b.yaml").write_text(MINIMAL.replace("feed: orders", "feed: b") + "plan: {x: 1}\n")
    wrong = FULL.replace("until: now", "until: then").replace("zstd", "zip").replace("7d", "7")
    (folder / "orders.yaml").write_text(wrong)
    found = read_feeds(folder)
    assert [str(each) for each in found.problems] == [
        "feeds/b.yaml:5: plan.x: unknown key; accepted: until, max_records_per_run,"
        " max_records_per_batch, max_partitions_per_batch",
        "feeds/orders.yaml:12: plan.until: 'then' is not accepted; accepted: now, window_end",
        "feeds/orders.yaml:19: target.compression: 'zip' is not accepted;"
        " accepted: zstd, snappy, lz4_raw, none",
        f"feeds/orders.yaml:25: reconcile.scrub_every: 7 is not accepted; accepted: {LENGTH}",
    ]
    assert list(found.feeds) == ["a"], "a broken file hides no other feed"
    assert load_feed(folder, "a").name == "a"


def test_two_refused_spark_properties_are_two_problems(folder: Path) -> None:
    conf = "conf: {spark.master: yarn, spark.executor.memory: 4g, spark.app.name: x}"
    assert problems_in(folder, FULL.replace("conf: {}", conf)) == [
        "feeds/orders.yaml:22: spark.conf.spark.app.name: 'x' is not accepted:"
        " the landing names its own application",
        "feeds/orders.yaml:22: spark.conf.spark.master: 'yarn' is not accepted:"
        " the Spark connection names the master",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("latest", "latest"),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:00:00Z", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01T10:00:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
        ("2026-11-01T10:00Z", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("'2026-11-01'", datetime(2026, 11, 1, tzinfo=UTC)),
    ],
)
def test_starts_are_read_as_instants_in_utc(folder: Path, written: str, meant: object) -> None:
    start = feed_of(folder, FULL.replace("start: earliest", f"start: {written}")).source.start
    assert start == meant
    if isinstance(start, datetime):
        assert start.utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-11-01", "2026-11-01T00:00:00+01:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
        ("2026-11-01T00:00:00Z", "2026-11-01T01:00:00+01:00"),
    ],
)
def test_a_start_date_is_midnight_in_the_schedule_s_time_zone(
    folder: Path, written: str, meant: str
) -> None:
    text = FULL.replace("timezone: UTC", "timezone: Europe/Berlin")
    schedule = feed_of(folder, text.replace("2026-11-01", written)).schedule
    assert schedule.start_date.isoformat() == meant
    assert schedule.start_date.tzinfo == ZoneInfo("Europe/Berlin")


def test_spark_properties_stay_as_they_were_written(folder: Path) -> None:
    conf = "conf: {spark.cores.max: 010, spark.a: true, spark.b: 1_0, spark.speculation: false}"
    assert feed_of(folder, FULL.replace("conf: {}", conf)).spark.conf == {
        "spark.cores.max": "010",
        "spark.a": "true",
        "spark.b": "1_0",
        "spark.speculation": "false",
    }


@pytest.mark.parametrize("topic", ["_schemas", ".x", "a.b-c_D9", "x" * 249])
def test_what_kafka_allows_as_a_topic_is_allowed(folder: Path, topic: str) -> None:
    assert feed_of(folder, FULL.replace("topic: orders", f"topic: {topic}")).source.topic == topic


def test_sections_may_be_empty_and_the_directory_is_normalised(folder: Path) -> None:
    text = MINIMAL.replace("/data/landing", "//data///landing/") + "plan:\nspark:\nreconcile:\n"
    assert feed_of(folder, text) == feed_of(folder, MINIMAL)


@pytest.mark.parametrize("codec", ["snappy", "lz4_raw", "none"])
def test_only_zstd_has_a_level(folder: Path, codec: str) -> None:
    target = feed_of(folder, FULL.replace("zstd", codec)).target
    assert (target.compression, target.compression_level) == (codec, None)


def test_a_preset_becomes_the_five_fields_that_airflow_runs(folder: Path) -> None:
    assert feed_of(folder, FULL.replace('"0 * * * *"', '"@daily"')).schedule.cron == "0 0 * * *"


def test_a_feed_is_immutable(folder: Path) -> None:
    feed = feed_of(folder, MINIMAL)
    with pytest.raises(ValueError, match="frozen"):
        feed.target.root = "/"  # type: ignore[misc]


def test_an_unknown_feed_is_told_with_the_nearest_names(folder: Path) -> None:
    for name in ("orders", "clicks"):
        (folder / f"{name}.yaml").write_text(MINIMAL.replace("feed: orders", f"feed: {name}"))
    with pytest.raises(ConfigurationError) as caught:
        load_feed(folder, "ordrs")
    assert str(caught.value) == (
        "there is no feed 'ordrs' in feeds; nearest: orders; there are: clicks, orders."
        " List the feeds: tallystick feed list"
    )
    with pytest.raises(ConfigurationError, match="in feeds; there are: clicks, orders"):
        load_feed(folder, "zzz")
    for number in range(20):
        (folder / f"f{number}.yaml").write_text(MINIMAL.replace("feed: orders", f"feed: f{number}"))
    with pytest.raises(ConfigurationError, match="nearest: orders; there are: 22 others"):
        load_feed(folder, "ordrs")


def test_a_folder_without_feeds(folder: Path) -> None:
    assert read_feeds(folder).feeds == {}
    with pytest.raises(ConfigurationError, match="feeds; the folder holds no feed file"):
        load_feed(folder, "orders")
    with pytest.raises(ConfigurationError, match=r"No such file or directory: the folder of feeds"):
        read_feeds(folder / "nowhere")


def test_hidden_files_and_other_kinds_are_no_feeds(folder: Path) -> None:
    for name in (".orders.yaml", "orders.yaml.swp", "README.md", "orders.json"):
        (folder / name).write_text("]")
    assert read_feeds(folder).problems == []


def test_one_feed_in_two_files(folder: Path) -> None:
    (folder / "orders.yaml").write_text(MINIMAL)
    assert problems_in(folder, MINIMAL, "orders.yml") == [
        "feeds/orders.yml:1: feed: 'orders' is not accepted:"
        " another file of this folder declares the feed already"
    ]
    with pytest.raises(FeedFileInvalid, match=r"feeds/orders\.yaml declares the same feed"):
        load_feed(folder, "orders")


def test_a_file_that_can_t_be_read_is_a_problem(folder: Path) -> None:
    (folder / "gone.yaml").symlink_to("nowhere")
    (folder / "orders.yaml").mkdir()
    assert [str(each) for each in read_feeds(folder).problems] == [
        "feeds/gone.yaml: it can't be read: No such file or directory",
        "feeds/orders.yaml: it can't be read: Is a directory",
    ]


def test_the_folder_comes_from_the_environment() -> None:
    assert feeds_folder({}) == feeds_folder({"TALLYSTICK_FEEDS": ""}) == DEFAULT_FOLDER
    assert feeds_folder({"TALLYSTICK_FEEDS": "/a/b"}) == Path("/a/b")
    assert (DEFAULT_FOLDER.parent.name, DEFAULT_FOLDER.name) == ("dags", "feeds")


def test_without_a_checkout_the_folder_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.settings.feeds.DEFAULT_FOLDER", tmp_path / "none")

    with pytest.raises(ConfigurationError, match="TALLYSTICK_FEEDS is missing"):
        feeds_folder({})


def test_reading_feeds_imports_nothing_heavy() -> None:
    heavy = "airflow pyspark pandas numpy pyarrow confluent_kafka psycopg kafka hdfs"
    script = (
        "import sys; from tallystick.settings import feeds, kafka_connection, hdfs_connection;"
        f"print([name for name in {heavy.split()} if name in sys.modules])"
    )
    assert said_by_new_python(script) == "[]"
