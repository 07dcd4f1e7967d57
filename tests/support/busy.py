"""How long tests wait for what comes: a busy machine may be many times slower than a quiet one."""

from __future__ import annotations

from typing import Final

BUSY_SECONDS: Final = 60.0
READER_SETTING: Final = "AIRFLOW__TALLYSTICK__READER_SECONDS"
"""By which a reader of Tallystick's page in Airflow waits as long, too."""
