"""A program for an environment of its own: what its Airflow makes of the package, as JSON.

Parses the DAG folder, asks the api-server's app for plugin and page, and runs a feed's DAGs. It
imports Airflow as it is run: the tests, which read this file too, shall not.
"""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from typing import Any


def dag_bag() -> Any:
    """The DAG folder, parsed."""
    try:
        from airflow.dag_processing.dagbag import DagBag
    except ImportError:  # 3.1
        from airflow.models.dagbag import DagBag
    return DagBag()


def parsed(bag: Any) -> dict[str, Any]:
    """Ids of DAGs, and the last line of each import error by its file's name."""
    errors = {Path(file).name: text.splitlines()[-1] for file, text in bag.import_errors.items()}
    return {"dags": sorted(bag.dags), "errors": errors}


def ran(dag: Any) -> dict[str, Any]:
    """How a run of the DAG ended, and each of its tasks; what the package has warned of."""
    warned: list[str] = []
    ours = logging.Handler(logging.WARNING)
    ours.emit = lambda record: warned.append(ours.format(record))  # type: ignore[method-assign]
    logging.getLogger("tallystick").addHandler(ours)
    run = dag.test()
    tasks = {each.task_id: each.state for each in run.get_task_instances()}
    return {"run": run.state, "run_id": run.run_id, "tasks": tasks, "warned": warned}


def shown(dag_id: str, run_id: str) -> dict[str, Any]:
    """Where the plugin is shown, and what the page answers to nobody and to a viewer."""
    from airflow.api_fastapi.app import cached_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    app = cached_app(apps="core")
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="vera", role="viewer"))
    client = TestClient(app, headers={"Authorization": f"Bearer {token}"})
    plugins = client.get("/api/v2/plugins").json()["plugins"]
    # The very first answer waits for imports, longer than the page lets anybody wait.
    answers = (client.get("/tallystick/api/feeds") for _ in range(5))
    feeds = next(each for each in answers if each.is_success).json()["feeds"]
    reader = TestClient(app, cookies={"_token": token})
    run = {"dag_id": dag_id, "run_id": run_id}
    pages = {
        "Feeds": reader.get("/tallystick/"),
        "dag": reader.get("/tallystick/dag", params={"dag_id": dag_id}),
        "run": reader.get("/tallystick/run", params=run),
    }
    return {
        "views": [
            view["destination"]
            for each in plugins
            if each["name"] == "tallystick"
            for view in each["external_views"]
        ],
        "anonymous": TestClient(app).get("/tallystick/api/feeds").status_code,
        "feeds": {each["feed"]: each["verdict"] for each in feeds},
        "pages": {name: page.status_code for name, page in pages.items()},
        "headings": pages["Feeds"].text.count("<h1>Feeds</h1>"),
    }


def main() -> None:
    """One run of the ingest DAG that the first argument names, then one of its feed's reconcile
    DAG; the second argument names the file for the JSON.
    """
    dag_id, out = sys.argv[1:]
    bag = dag_bag()
    found = parsed(bag) | ran(bag.dags[dag_id])
    found |= shown(dag_id, found["run_id"])
    found["reconciled"] = ran(bag.dags[dag_id.replace("ingest_", "reconcile_")])
    Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
