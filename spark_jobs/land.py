"""What spark-submit starts to land one batch: `land.py URI-OF-PLAN.JSON`. It decides nothing.

The package comes with the application (`--py-files`). Standard output gets three plain lines: the
application's id, what is landed, and that it is done or why not. Exit code 1 means that nothing of
the output may be used.
"""

from __future__ import annotations

import ctypes
import os
import sys

PR_SET_PDEATHSIG, SIGKILL = 1, 9


def die_with_jvm(jvm: int) -> None:
    """Have Linux kill this process with the JVM that started it.

    Without it, a driver that is busy in plain Python code outlives its killed JVM. `jvm` is its
    process id: one that died before Linux knew what to do then is the parent no more. One that was
    dead even before it was asked for is found out by its gateway, which does not answer.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        if os.getppid() != jvm:
            os.kill(os.getpid(), SIGKILL)


def say(line: str) -> None:
    """Write one line at once: the runner reads along."""
    sys.stdout.write(f"tallystick: {line}\n")
    sys.stdout.flush()


def main(plan_uri: str) -> int:
    """The exit code of the application that lands the plan at this URI."""
    # These imports take a second, and the guard comes before all that takes time.
    from pyspark.sql import SparkSession

    from tallystick.domain.landing import LandingPlan
    from tallystick.spark.causes import failure_of
    from tallystick.spark.landing import land

    spark = SparkSession.builder.getOrCreate()
    try:
        say(f"application {spark.conf.get('spark.app.id')}")
        plan = LandingPlan.from_json(spark.read.text(plan_uri, wholetext=True).head().value)
        ranges = [each for scan in plan.scans for each in scan.ranges]
        say(
            f"landing batch {plan.batch_id}: {len(ranges)} ranges of {plan.topic},"
            f" {sum(each.span for each in ranges)} offsets, into {plan.output}"
        )
        land(spark, plan)
    except Exception as error:  # noqa: BLE001 - the edge: whatever it is, say it and fail
        say(f"landing failed: {failure_of(error)}")
        return 1
    finally:
        spark.stop()
    say(f"landed batch {plan.batch_id}")
    return 0


if __name__ == "__main__":
    die_with_jvm(os.getppid())
    sys.exit(main(*sys.argv[1:]))
