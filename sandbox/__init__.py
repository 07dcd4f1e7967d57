"""The one-machine stack: real Kafka, HDFS, PostgreSQL, Airflow and Spark, without containers.

Starts, watches and stops processes. It decides nothing about feeds, batches or offsets, and the
package ``tallystick`` never imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.stack import Sandbox

__all__ = ["Sandbox"]


def __getattr__(name: str) -> Any:
    """Sandbox, imported at first use: ``sandbox.entry`` runs before third-party packages exist."""
    if name == "Sandbox":
        from sandbox.stack import Sandbox

        return Sandbox
    raise AttributeError(f"module 'sandbox' has no attribute {name!r}")
