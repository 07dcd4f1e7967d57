"""Builds the adapters behind the ports from settings and connections: the only place that knows
them all.
"""

from tallystick.wiring.adapters import (
    LEDGER_CONNECTION,
    ledger_dsn,
    open_ledger,
    open_services,
    patient_ledger,
    secrets_file,
    shipped_secrets,
)

__all__ = [
    "LEDGER_CONNECTION",
    "ledger_dsn",
    "open_ledger",
    "open_services",
    "patient_ledger",
    "secrets_file",
    "shipped_secrets",
]
