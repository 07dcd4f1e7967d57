"""``./tallystick airflow``: Airflow's command line, with the settings of the sandbox's Airflow."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from sandbox.entry.console import say
from sandbox.errors import WrongUse
from sandbox.service import program
from sandbox.stack import Sandbox


def run(arguments: Sequence[str]) -> NoReturn:
    """Become that program; raises WrongUse where the sandbox's Airflow does not run."""
    sandbox = Sandbox()
    if not sandbox.airflow.api_server.is_running:
        raise WrongUse("the sandbox's Airflow is not running. Next: ./tallystick sandbox up")
    os.execve(program("airflow"), ["airflow", *arguments], sandbox.airflow.environment())


def main() -> None:
    """Run the command line; what goes wrong before it is told in plain words."""
    try:
        run(sys.argv[1:])
    except WrongUse as failure:
        say(str(failure))
        raise SystemExit(failure.exit_code) from failure


if __name__ == "__main__":
    main()
