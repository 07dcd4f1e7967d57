"""Finds on YARN what an attempt has left behind, by the tag that bears its id, and kills it.

By Hadoop's own client, which Spark brings along: it reads the cluster's configuration, tries both
of two ResourceManagers, and logs in by Kerberos where it must.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
from typing import Final

from tallystick.spark.parent_death import dying_with_parent
from tallystick.spark.place import SparkPlace
from tallystick.spark.work_directory import work_directory

logger = logging.getLogger(__name__)

_CLIENT: Final = "org.apache.hadoop.yarn.client.cli.ApplicationCLI"
# A ResourceManager that is silent would be asked for a quarter of an hour.
ANSWER_SECONDS: Final = 40
_RUNNING: Final = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING"
_LISTED: Final = re.compile(r"^(application_\d+_\d+)\s", re.MULTILINE)


def tag_of(work_id: str) -> str:
    """The tag of all applications of an attempt, or of a scrub."""
    return f"tallystick-{work_id}"


def end_tagged(place: SparkPlace, work_id: str) -> bool:
    """True once no application of this attempt or scrub runs any more; False without an answer.

    It takes seconds, most of them for the start of Java. Raises nothing.
    """
    found = _asked(place, "-list", "-appTags", tag_of(work_id), "-appStates", _RUNNING)
    if found is None:
        return False
    return all(end_application(place, each) for each in _LISTED.findall(found))


def end_application(place: SparkPlace, application_id: str) -> bool:
    """True once YARN has killed it; False without an answer. Raises nothing.

    It is killed even if this process ends meanwhile: a task that Airflow kills has five seconds.
    """
    logger.warning("Application %s has nobody who waits for it: YARN kills it.", application_id)
    return _asked(place, "-kill", application_id, outlives=True) is not None


def _asked(place: SparkPlace, *arguments: str, outlives: bool = False) -> str | None:
    """Returns what YARN answers; None where it does not, or refuses."""
    if place.keys is not None:
        with work_directory({}) as directory:
            return _asked(place.with_keytab_in(directory), *arguments, outlives=outlives)
    # Both are said, or spark-defaults.conf says them.
    here = ("--master", "local", "--deploy-mode", "client")
    argv = [place.spark_submit, *here, *place.login(), "--class", _CLIENT]
    argv += ["spark-internal", "application", *arguments]
    env = place.environment(os.environ)
    try:
        done = subprocess.run(
            argv if outlives else dying_with_parent(argv, path=env.get("PATH")),
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=ANSWER_SECONDS,
            check=False,
            start_new_session=outlives,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        logger.warning("YARN was not asked for applications that were left behind: %s", error)
        return None
    if done.returncode == 0:
        return done.stdout
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    logger.warning("YARN does not answer about applications that were left behind: %s", last)
    return None
