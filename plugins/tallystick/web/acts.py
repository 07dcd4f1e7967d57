"""A page offers its reader these acts: a name, a right, the repairs, the token of a form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tallystick.web.answers import AskedRunPart, RepairsAnswer


@dataclass(frozen=True, slots=True)
class Acts:
    """A user may do these acts about a feed or a finding; repairs may be under way."""

    name: str
    may_change: bool
    repairs: RepairsAnswer | None
    """None where Airflow does not tell this user."""
    form_token: Callable[[str], str]
    """For each form's address, below the app's own."""

    @property
    def newest(self) -> AskedRunPart | None:
        """The repair that was asked for last."""
        return self.repairs.runs[0] if self.repairs and self.repairs.runs else None
