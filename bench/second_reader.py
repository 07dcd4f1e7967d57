"""What the proof and the second reader cost: `.venv/bin/python bench/second_reader.py`.

Once set up. Starts a Kafka, an HDFS and a ledger of its own, fills one topic, and lands it by the
real workflow, with spark-submit. It prints how much of the landing's CPU the proof took, which
reads the files back and accounts for every offset, and how much the sample in the run's check, each
time with a reader that was not connected before. Then what a rotation of `reconcile.second_reader`
costs.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "plugins"))

from bench import stack
from bench.measured import Bound, cost_of, print_environment, print_result
from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.identities import FeedName
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import Feed
from tallystick.wiring.adapters import open_services
from tallystick.workflows.committing import verification
from tallystick.workflows.committing.log_as_read import JustRead
from tallystick.workflows.committing.proving import proven
from tallystick.workflows.comparing.second_reading import (
    SecondReadReport,
    compare_newest,
    second_read,
)
from tallystick.workflows.landing import run
from tallystick.workflows.services import Services

AIM, PROOF_AIM = 0.01, 0.012


def main() -> None:
    """Start, fill, measure, print."""
    arguments = _arguments()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as scratch,
        stack.services(Path(scratch), ["kafka", "hdfs", "postgres"]) as sandbox,
    ):
        print_environment()
        environ = stack.variables(sandbox)
        servers = environ["KAFKA_BOOTSTRAP_SERVERS"]
        stack.fill(servers, arguments.records, arguments.bytes, arguments.partitions)
        shares = [
            _landed(f"sampled-{number}", environ, arguments.records)
            for number in range(arguments.landings)
        ]
        sample, proof = (statistics.median(each) for each in zip(*shares, strict=True))
        print(
            f"median of {len(shares)}: the sample {sample:.2%} of the landing, the proof"
            f" {proof:.2%}; the aims are at most {AIM:.0%} and {PROOF_AIM:.1%}"
        )
        for budget in arguments.budgets:
            _rotated(stack.feed_of("sampled-0"), environ, budget)
    ratios = {
        "share": Bound(sample, at_most=AIM),
        "share of the proof": Bound(proof, at_most=PROOF_AIM),
    }
    print_result("second_reader", len(shares), {"records": arguments.records}, ratios)


def _landed(name: str, environ: Mapping[str, str], records: int) -> tuple[float, float]:
    """The shares of the sample and of the proof in the landing's CPU, their own included."""
    taken: list[tuple[float, float, SecondReadReport]] = []
    proving: list[float] = []

    def measured(services: Services) -> SecondReadReport:
        wall, cpu = time.perf_counter(), time.process_time()
        found = compare_newest(services)
        if not found.offsets or found.not_compared:
            raise SystemExit(f"no sample: {found}")
        taken.append((time.perf_counter() - wall, time.process_time() - cpu, found))
        return found

    def timed(
        services: Services, attempt: Attempt, plan: BatchPlan, just_read: JustRead | None = None
    ) -> Manifest:
        cpu = time.process_time()
        found = proven(services, attempt, plan, just_read)
        proving.append(time.process_time() - cpu)
        return found

    # They are not exported from there.
    setattr(run, "compare", measured)  # noqa: B010
    setattr(verification, "proven", timed)  # noqa: B010
    cost = cost_of(partial(stack.land, name, environ, records))
    [(wall, cpu, compared)] = taken
    print(
        f"{name}: {cost.cpu_seconds:.1f} CPU-s, {cost.wall_seconds:.1f} s; of it the sample"
        f" {cpu:.3f} CPU-s, {wall:.2f} s, {compared.offsets} offsets of {compared.batches}"
        f" batches: {cpu / cost.cpu_seconds:.2%}; the proof {sum(proving):.3f} CPU-s:"
        f" {sum(proving) / cost.cpu_seconds:.2%}",
        flush=True,
    )
    return cpu / cost.cpu_seconds, sum(proving) / cost.cpu_seconds


def _rotated(feed: Feed, environ: Mapping[str, str], budget: int) -> None:
    changed = feed.reconcile.model_copy(update={"second_reader": budget})
    feed = feed.model_copy(update={"reconcile": changed})
    with open_services(feed, lambda conn_id: connection_in(environ, conn_id)) as services:
        snapshot = services.broker.snapshot(services.topic)
        accounts = services.ledger.accounts(FeedName(feed.name))
        wall, cpu = time.perf_counter(), time.process_time()
        report = second_read(services, accounts, snapshot)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if report.findings or report.unheard or not report.offsets:
        raise SystemExit(str(report))
    print(
        f"rotation of {budget:,}: {report.offsets:,} offsets of {report.batches} batches in"
        f" {wall:.2f} s, {cpu:.2f} CPU-s"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--bytes", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=6)
    parser.add_argument("--landings", type=int, default=3)
    parser.add_argument("--budgets", type=int, nargs="*", default=[10_000, 100_000])
    return parser.parse_args()


if __name__ == "__main__":
    main()
