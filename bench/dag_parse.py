"""What Airflow's parsing of the DAG file costs: `python bench/dag_parse.py [--feeds 300]`.

Makes a folder of that many feed files, then takes, in turn, what the DAG processor does (all DAGs)
and what every task does as it starts (its own DAG), in this process, imports apart. The last figure
is what the imports of the package took, once.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench.measured import ROOT, Bound, as_figures, in_turn, print_environment, print_result

MOST_CPU_SECONDS = 1.5
"""For 300 feeds, by the DAG processor."""


def main() -> None:
    """Make the files, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--feeds", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    print_environment()
    with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
        os.environ.update(AIRFLOW_HOME=f"{scratch}/airflow", AIRFLOW__CORE__LOAD_EXAMPLES="False")
        folder = Path(scratch, "feeds")
        _make_feeds(folder, arguments.feeds)
        import airflow.sdk  # noqa: F401 - Airflow's own imports are not ours

        begun_at = time.process_time()
        from tallystick.orchestration.factory import build_dags

        imports = time.process_time() - begun_at
        dags = build_dags(folder, None)
        own = sorted(dags)[len(dags) // 2]
        medians = in_turn(
            {
                "all feeds": lambda _: build_dags(folder, None),
                "a task's own DAG": lambda _: build_dags(folder, own),
            },
            pairs=arguments.pairs,
        )
    per_feed = medians["all feeds"].cpu_seconds / arguments.feeds
    figures = as_figures(medians) | {"imports": {"cpu_seconds": round(imports, 3)}}
    bound = Bound(per_feed * 300, at_most=MOST_CPU_SECONDS, unit="CPU-s")
    print_result("dag_parse", arguments.pairs, figures, {"300 feeds": bound})


def _make_feeds(folder: Path, count: int) -> None:
    folder.mkdir()
    sample = (ROOT / "dags" / "feeds" / "orders.yaml").read_text()
    for number in range(count):
        name = f"feed_{number:04d}"
        text = sample.replace("feed: orders", f"feed: {name}")
        (folder / f"{name}.yaml").write_text(text)


if __name__ == "__main__":
    main()
