"""What every bench does alike: name the machine, take medians, end with one line of JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
_LOAD_BEFORE = round(os.getloadavg()[0], 1)
"""Before a bench has started anything: how busy others keep the machine."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one piece of work took."""

    wall_seconds: float
    cpu_seconds: float
    """User and system time of this process, of what it started, and of the servers it used."""
    own_cpu_seconds: float
    """Of this process alone."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What was measured, and what it is meant to be."""

    is_: float
    at_most: float | None = None
    at_least: float | None = None
    unit: str = ""
    """Empty for a ratio."""

    def as_fields(self) -> dict[str, float | str]:
        """Rounded, without a bound or a unit that is not set."""
        fields = {"is": self.is_, "at_most": self.at_most, "at_least": self.at_least}
        rounded = {name: round(value, 4) for name, value in fields.items() if value is not None}
        return rounded | ({"unit": self.unit} if self.unit else {})


def cost_of(work: Callable[[], object], servers: Sequence[int] = ()) -> Cost:
    """What the work took here, in all processes that it started and waited for, and in servers.

    Servers are process ids. They do nothing else meanwhile, or that counts too.
    """
    wall, own, started, served = time.perf_counter(), *_cpu_seconds(), _served(servers)
    work()
    wall = time.perf_counter() - wall
    own_after, started_after = _cpu_seconds()
    own, started = own_after - own, started_after - started
    return Cost(wall, own + started + _served(servers) - served, own)


def in_turn(
    ways: Mapping[str, Callable[[str], object]],
    *,
    pairs: int,
    warm_ups: int = 1,
    servers: Sequence[int] = (),
) -> dict[str, Cost]:
    """The median cost of each way, taken one after the other, in both orders by turns.

    Each way is called with a name that no call had before. The first `warm_ups` rounds warm
    caches up and do not count. Each round is printed.
    """
    costs: dict[str, list[Cost]] = {way: [] for way in ways}
    for number in range(warm_ups + pairs):
        for place, (way, work) in enumerate(list(ways.items())[:: 1 if number % 2 else -1]):
            cost = cost_of(partial(work, f"round-{number}-{place}"), servers)
            costs[way].append(cost)
        label = "warm-up" if number < warm_ups else f"round {number - warm_ups + 1}"
        taken = ", ".join(
            f"{way} {each[-1].wall_seconds:.2f} s {each[-1].cpu_seconds:.2f} CPU-s"
            for way, each in costs.items()
        )
        print(f"{label:>8}: {taken}, load {os.getloadavg()[0]:.1f}", flush=True)
    return {way: _median(each[warm_ups:]) for way, each in costs.items()}


def _median(costs: Sequence[Cost]) -> Cost:
    """Of each figure by itself."""
    return Cost(
        statistics.median(each.wall_seconds for each in costs),
        statistics.median(each.cpu_seconds for each in costs),
        statistics.median(each.own_cpu_seconds for each in costs),
    )


def as_figures(medians: Mapping[str, Cost]) -> dict[str, dict[str, float]]:
    """Seconds of each way, for `print_result`."""
    return {
        way: {
            "wall_seconds": round(cost.wall_seconds, 3),
            "cpu_seconds": round(cost.cpu_seconds, 3),
        }
        for way, cost in medians.items()
    }


def jvm_of(spark: SparkSession) -> int:
    """The process id of a session's own JVM."""
    gateway: Any = spark.sparkContext._jvm
    return int(gateway.java.lang.ProcessHandle.current().pid())


def print_environment() -> None:
    """When, on what, and how busy it is."""
    machine = _machine()
    print(
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {machine['cores']} cores,"
        f" {machine['memory_gib']} GiB, load {os.getloadavg()[0]:.1f}; {machine['platform']};"
        f" Python {machine['python']}, Spark {machine['spark']}",
        flush=True,
    )


def print_result(
    name: str, pairs: int, figures: Mapping[str, object], ratios: Mapping[str, Bound]
) -> None:
    """The last line of a bench, for a script to read.

    The name is the module's. `figures` are seconds, bytes or counts, as their keys say; `ratios`
    compare what was measured with what it is meant to be.
    """
    line = {
        "name": name,
        "taken_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "command": _command(),
        "commit": _commit(),
        "machine": _machine() | {"load_before": _LOAD_BEFORE},
        "pairs": pairs,
        "figures": figures,
        "ratios": {each: bound.as_fields() for each, bound in ratios.items()},
    }
    print(json.dumps(line, separators=(",", ":")), flush=True)


def _machine() -> dict[str, object]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "platform": f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}",
        "python": platform.python_version(),
        "spark": version("pyspark"),
        "processor": _processor(),
    }


def _processor() -> str:
    """Its maker and family: what hashing costs beside decoding differs by a factor of two."""
    found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def _command() -> str:
    """How the bench was called, without the places of this machine."""
    words = [f"bench/{Path(sys.argv[0]).name}"]
    for word in sys.argv[1:]:
        if not word.rpartition("=")[2].startswith("/"):
            words.append(word)
        elif "=" not in word:
            del words[-1]  # the option that names the place
    return shlex.join(words)


def _commit() -> str:
    """Of the checkout; with a + if something in it is changed."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+", "--abbrev=7"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _cpu_seconds() -> tuple[float, float]:
    """Of this process, and of all it started that have ended."""
    own, started = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime, started.ru_utime + started.ru_stime


def _served(servers: Sequence[int]) -> float:
    times = [psutil.Process(each).cpu_times() for each in servers]
    return sum(each.user + each.system for each in times)
