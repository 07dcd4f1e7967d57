"""Where the sandbox's services keep what cannot lie below their state directory."""

from __future__ import annotations

from pathlib import Path

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.state import State


def home(directory: Path) -> Home:
    return Home(directory, State(directory), Ports(State(directory), {}))


def test_a_checkout_made_anew_at_the_same_path_does_not_meet_the_old_ones_data(
    tmp_path: Path,
) -> None:
    """The passwords of that data went with the checkout that was deleted."""
    old = home(tmp_path).outside("postgres")
    assert home(tmp_path).outside("postgres") == old
    (tmp_path / "state.json").unlink()
    assert home(tmp_path).outside("postgres") != old


def test_each_service_has_a_place_of_its_own(tmp_path: Path) -> None:
    assert home(tmp_path).outside("postgres") != home(tmp_path).outside("hdfs")
