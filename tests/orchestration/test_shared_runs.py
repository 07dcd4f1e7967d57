"""One DAG for many feeds: each topic like the pattern is landed, new ones too, whatever one has.

The ledger and the files are real; Kafka and Spark are scripted.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tallystick.domain.identities import FeedName
from tallystick.errors import BrokerUnavailable, SourceRefused
from tests.orchestration.cluster import EU, GROUP, NEW, US, Cluster
from tests.orchestration.conftest import parsed_dags
from tests.orchestration.stage import run
from tests.support.scripted_broker import Kind

pytestmark = [
    pytest.mark.usefixtures("airflow_database", "_short_polls"),
    pytest.mark.filterwarnings("default"),
]
LANDED = {"feeds": "success", "land[0]": "success", "land[1]": "success"}


def dag(kind: str) -> Any:
    return parsed_dags()[f"{kind}_events"]


def test_a_file_of_topics_has_four_dags_and_its_parse_asks_nobody(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.orchestration.shared.topics_of", pytest.fail)
    assert set(parsed_dags()) == {
        f"{kind}_events" for kind in ("ingest", "reconcile", "repair", "deadline")
    }


def test_each_topic_is_landed_and_a_new_one_by_the_next_run_without_a_parse(
    cluster: Cluster,
) -> None:
    ingest = dag("ingest")
    found = run(ingest)
    assert found.state == "success"
    assert found.tasks == LANDED | {"judge": "success"}
    assert cluster.feeds() == [EU, US]
    cluster.create("orders.New")
    cluster.create("other")
    assert run(ingest).state == "success"
    assert cluster.feeds() == [NEW, EU, US]
    assert [cluster.rows(each) for each in (EU, US, NEW)] == [10, 10, 10]


def test_each_feed_has_its_own_assets(cluster: Cluster) -> None:
    from airflow import settings
    from airflow.models.asset import AssetEvent, AssetModel
    from sqlalchemy import select

    found = run(dag("ingest"))
    assert [each["offsets"] for each in found.events if "offsets" in each] == [10, 10]
    session = settings.Session()
    told = session.scalars(
        select(AssetModel.name).join(AssetEvent, AssetEvent.asset_id == AssetModel.id)
    )
    assert {f"tallystick://{EU}", f"tallystick://{US}"} <= set(told)


def test_a_broken_feed_fails_alone_and_the_others_go_on(cluster: Cluster) -> None:
    cluster.failures["orders.eu"] = [SourceRefused("topic orders.eu", "not authorised")]
    found = run(dag("ingest"))
    assert found.state == "failed"
    assert (found.tasks["land[0]"], found.tasks["land[1]"]) == ("failed", "success")
    assert [cluster.rows(each) for each in (EU, US)] == [0, 10]
    assert run(dag("ingest")).state == "success"
    assert [cluster.rows(each) for each in (EU, US)] == [10, 10]


def test_a_pattern_that_matches_nothing_is_a_green_run(cluster: Cluster) -> None:
    cluster.brokers.clear()
    found = run(dag("ingest"))
    assert (found.state, found.tasks["land"], cluster.feeds()) == ("success", "skipped", [])


def test_a_cluster_that_does_not_answer_is_a_red_run(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(group: object) -> list[str]:
        raise SourceRefused("the connection to kafka:9092", "no such user")

    monkeypatch.setattr("tallystick.orchestration.shared.topics_of", refused)
    found = run(dag("ingest"))
    assert (found.state, found.tasks["feeds"]) == ("failed", "failed")


def test_news_of_each_feed_are_told_whatever_became_of_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(
        "tallystick.orchestration.shared.notify", lambda feed, context: told.append(feed.name)
    )
    smtp = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
    (cluster.folder / "events.yaml").write_text(
        f"{GROUP}notify: [{{notifier: {smtp}, arguments: {{to: a}}}}]\n"
    )
    cluster.failures["orders.eu"] = [SourceRefused("topic orders.eu", "not authorised")]
    assert run(dag("ingest")).state == "failed"
    assert sorted(told) == [EU, US]
    told.clear()
    assert run(dag("deadline"), step=timedelta(seconds=1)).tasks["notify[0]"] == "success"
    assert told == [US], "the other one is not on record yet"


def test_what_may_pass_is_tried_again_and_lands_once(cluster: Cluster) -> None:
    cluster.failures["orders.us"] = [BrokerUnavailable("kafka:9092", "it is restarted")] * 2
    found = run(dag("ingest"))
    assert found.state == "success"
    assert found.tries["land[1]"] == 3
    assert [cluster.rows(each) for each in (EU, US)] == [10, 10]


def test_a_topic_whose_name_can_be_no_feeds_fails_by_that(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.create("orders.zz" + "z" * 190)
    found = run(dag("ingest"))
    assert found.state == "failed"
    assert [found.tasks[f"land[{n}]"] for n in range(3)] == ["success", "success", "failed"]


def test_a_run_for_one_feed_leaves_the_others(cluster: Cluster) -> None:
    found = run(dag("ingest"), feed=US)
    assert found.state == "success"
    assert "land[1]" not in found.tasks
    assert cluster.feeds() == [US]


def test_a_loss_is_red_in_both_dags_and_others_are_green(cluster: Cluster) -> None:
    run(dag("ingest"))
    cluster.brokers["orders.eu"].logs[0].append(Kind.RECORD, 5)
    cluster.brokers["orders.eu"].logs[0].log_start_offset = 12
    found = run(dag("ingest"))
    assert found.state == "failed"
    assert found.tasks == LANDED | {"judge": "failed"}
    found = run(dag("reconcile"))
    assert found.state == "failed"
    assert found.tasks["judge"] == "failed"
    verdicts = [each["verdict"] for each in found.events]
    assert sorted(verdicts) == ["PROVEN_LOSS", "PROVEN_OK"]


def test_a_retired_feed_is_landed_no_more(cluster: Cluster) -> None:
    run(dag("ingest"))
    with cluster.open_ledger() as ledger:
        ledger.retire(FeedName(EU), reason="over", by="ada")
    found = run(dag("ingest"))
    assert found.state == "success"
    assert "land[1]" not in found.tasks


def test_each_feed_on_record_has_its_deadline(cluster: Cluster) -> None:
    assert run(dag("deadline"), step=timedelta(seconds=1)).tasks["complete"] == "skipped"
    run(dag("ingest"), step=timedelta(seconds=1))
    found = run(dag("deadline"), step=timedelta(seconds=1))
    assert found.tasks == {"feeds": "success", "complete[0]": "success", "complete[1]": "success"}


def test_a_repair_is_of_the_feed_that_its_form_names(cluster: Cluster) -> None:
    run(dag("ingest"))
    [gone] = (cluster.directory / "landing" / EU).rglob("*.parquet")
    gone.unlink()
    run(dag("reconcile"))
    found = run(dag("repair"), feed=US, dry_run=True)
    assert "nothing" in found.shown[0]["lines"][0]["text"].lower()
    with cluster.open_ledger() as ledger:
        [missing] = ledger.findings(FeedName(EU))
    found = run(dag("repair"), feed=EU, findings=str(missing.finding_id), dry_run=False)
    assert found.state == "success"
    assert [cluster.rows(each) for each in (EU, US)] == [10, 10]


@pytest.mark.parametrize("kind", ["ingest", "reconcile", "repair"])
def test_no_run_of_a_group_touches_a_feed_of_another_file(cluster: Cluster, kind: str) -> None:
    text = GROUP.replace("feed: events", "feed: clicks").replace(
        "topics: 'orders\\..*'", "topic: a"
    )
    (cluster.folder / "clicks.yaml").write_text(text)
    cluster.create("a")
    found = run(dag(kind), feed="clicks")
    assert found.state == "failed"
    assert cluster.feeds() == []


def test_a_repair_without_a_feed_does_nothing_and_says_so(cluster: Cluster) -> None:
    found = run(dag("repair"), dry_run=False)
    assert (found.state, found.tasks["begin"]) == ("failed", "failed")
