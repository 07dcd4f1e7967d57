"""Builds the adapters behind the ports from settings and connections: the only place that knows
them all.
"""

from tallystick.wiring.adapters import (
    LANDING_APPLICATION,
    SCRUB_APPLICATION,
    SEARCH_APPLICATION,
    ledger_dsn,
    open_ledger,
    open_services,
    patient_ledger,
    secrets_file,
    shipped_secrets,
    spark_place,
)

__all__ = [
    "LANDING_APPLICATION",
    "SCRUB_APPLICATION",
    "SEARCH_APPLICATION",
    "ledger_dsn",
    "open_ledger",
    "open_services",
    "patient_ledger",
    "secrets_file",
    "shipped_secrets",
    "spark_place",
]
