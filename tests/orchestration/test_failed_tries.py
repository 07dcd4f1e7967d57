"""Why a try has failed: its sentence is kept, for the page of its run and the first sentence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from tallystick.errors import ApplicationFailed, SourceRefused
from tests.orchestration.page_place import PagePlace
from tests.orchestration.stage import Stage, run

pytestmark = [
    pytest.mark.usefixtures("known_dags", "no_runs"),
    pytest.mark.filterwarnings("default"),
]
REFUSED = (
    "Kafka refused topic orders: not authorised. Check the connection's user and its rights, then"
    " run again."
)


@pytest.fixture
def failed(stage: Stage, dags: Any) -> str:
    """The address of a run of which one task has failed at once, and one in every try."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session

    stage.failures[1] = [SourceRefused("topic orders", "not authorised")]
    stage.failures[2] = [ApplicationFailed("b", "local-1", "a node died")] * 3
    assert run(dags["ingest_orders"]).state == "failed"
    with create_session() as session:
        run_id = session.query(DagRun.run_id).scalar()
    return f"dag_id=ingest_orders&run_id={quote(run_id)}"


def test_each_failed_try_is_told_with_its_sentence_and_leads_to_its_log(
    stage: Stage, failed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = PagePlace(stage.story.dsn)
    found = place.client("vera").get(f"/api/run?{failed}").json()["failed_tries"]
    told = {
        (each["task_id"], each["map_index"], each["try_number"]): each["sentence"] for each in found
    }
    assert list(told)[2:] == [("check", None, 1), *(("batch.land", 2, each) for each in (1, 2))]
    assert [each["is_tried_again"] for each in found] == [False, False, False, True, True]
    assert told["batch.land", 1, 1].endswith(REFUSED)
    assert "a node died" in told["batch.land", 2, 3]
    assert told["batch.land", 2, 1] is told["batch.land", 2, 2] is None
    assert told["check", None, 1].startswith("Feed orders: ")
    assert "http" not in told["check", None, 1]

    page = place.client("vera", by_cookie=True).get(f"/run?{failed}").text
    assert "not authorised" in page.partition("<main")[0]
    assert "tasks/batch.land/mapped/2?try_number=3" in page
    # The first sentence has that of the task that failed first.
    first = found[0]["sentence"].partition(": ")[0]
    for address in ("/", "/feeds/orders"):
        assert f"Feed orders, at land, {first.split(', ')[2]}" in (
            place.client("vera", by_cookie=True).get(address).text
        )

    _without(place, monkeypatch, "XCOM")
    assert "batch.land[1] has failed: no sentence" in (
        place.client("vera", by_cookie=True).get(f"/run?{failed}").text
    )
    assert "at land" not in place.client("vera").get("/api/feeds").text
    _without(place, monkeypatch, "XCOM", "TASK_INSTANCE")
    assert place.client("vera").get(f"/api/run?{failed}").json()["failed_tries"] == []


def test_a_run_that_fails_on_its_findings_alone_is_told_by_them(stage: Stage, dags: Any) -> None:
    assert run(dags["ingest_orders"]).state == "success"
    next(stage.story.directory.joinpath("landing").rglob("*.parquet")).unlink()
    found = run(dags["reconcile_orders"])
    assert found.tasks == {"reconcile": "success", "judge": "failed"}

    signs = PagePlace(stage.story.dsn).client("vera").get("/api/feeds").json()["signs"]
    said = [each["said"] for each in signs if each["feed"] == "orders"]
    assert any(each.startswith("PROVEN_LOSS: 1 trouble") for each in said)
    assert not [each for each in said if "fails" in each]


def _without(place: PagePlace, monkeypatch: pytest.MonkeyPatch, *parts: str) -> None:
    """Nobody may read these parts of a run."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

    really, hidden = place.manager.is_authorized_dag, [DagAccessEntity[each] for each in parts]

    def is_authorized(*, access_entity: Any = None, **rest: Any) -> bool:
        if access_entity in hidden:
            return False
        return bool(really(access_entity=access_entity, **rest))

    monkeypatch.setattr(place.manager, "is_authorized_dag", is_authorized)


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (SourceRefused("topic t", "no"), str(SourceRefused("topic t", "no"))),
        (KeyError("a password"), "A defect, KeyError."),
        # Airflow's own words on a task that something else has ended.
        ("Task did not emit heartbeat within time limit", None),
        (None, None),
    ],
)
def test_what_ended_a_try_is_kept_in_a_line_and_of_a_killed_one_nothing(
    error: object, kept: str | None
) -> None:
    from tallystick.orchestration.run_context import keep_sentence

    pushed: list[dict[str, Any]] = []
    ti = SimpleNamespace(
        dag_id="d", run_id="r", xcom_push=lambda key, value: pushed.append({key: value})
    )
    keep_sentence({"ti": ti, "exception": error})
    assert pushed == ([{"failed_as": {"sentence": kept}}] if kept else [])
