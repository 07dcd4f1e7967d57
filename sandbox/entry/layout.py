"""Where things lie: the checkout, its virtual environment, the state directory, the jars."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements.txt"
KERBEROS_REQUIREMENTS = ROOT / "requirements-kerberos.txt"
POMS = ROOT / "sandbox" / "poms"
SPARK_LOGGING = ROOT / "sandbox" / "spark" / "log4j2.properties"

# What set-up fetches is shared by all state directories of a checkout.
FETCHED = ROOT / ".sandbox"
JARS = FETCHED / "jars"
SETUP_LOG = FETCHED / "logs" / "setup.log"
SETUP_LOCK = FETCHED / "setup.lock"


def state_dir() -> Path:
    """The directory of data, logs and passwords: TALLYSTICK_SANDBOX_DIR, else .sandbox/."""
    chosen = os.environ.get("TALLYSTICK_SANDBOX_DIR")
    return Path(chosen).expanduser().resolve() if chosen else FETCHED


def connections_file(state: Path) -> Path:
    """The file with addresses and passwords of a running sandbox; absent after ``down``."""
    return state / "connections.json"
