"""What spark-submit starts to read landed files in full: `scrub.py URI-OF-SCRUB.JSON`.

It decides nothing. The package comes with the application (`--py-files`). Standard output gets
three plain lines: the application's id, what is read, and that it is done or why not. Exit code 1
means that there is no result.
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
    """The exit code of the application that carries out the scrub plan at this URI."""
    # These imports take a second, and the guard comes before all that takes time.
    from pyspark.sql import SparkSession

    from tallystick.domain.scrub import ScrubPlan
    from tallystick.spark.causes import failure_of
    from tallystick.spark.scrubbing import scrub, write_result

    spark = SparkSession.builder.getOrCreate()
    try:
        say(f"application {spark.conf.get('spark.app.id')}")
        plan = ScrubPlan.from_json(spark.read.text(plan_uri, wholetext=True).head().value)
        size = sum(each.length_bytes for each in plan.files)
        say(f"reading {len(plan.files)} files of {size} bytes in full: scrub {plan.scrub_id}")
        result = scrub(spark, plan)
        write_result(spark, plan, result)
    except Exception as error:  # noqa: BLE001 - the edge: whatever it is, say it and fail
        say(f"scrub failed: {failure_of(error)}")
        return 1
    finally:
        spark.stop()
    unread = [each.name for each in result.files if each.failure]
    say(f"scrubbed {len(plan.files) - len(unread)} files, {len(unread)} could not be read")
    return 0


if __name__ == "__main__":
    die_with_jvm(os.getppid())
    sys.exit(main(*sys.argv[1:]))
