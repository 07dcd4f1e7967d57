"""What a producer sent, without the place that it has in the log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Payload:
    """One landed row without its place: what a producer sent."""

    offset: int
    timestamp_ms: int
    content_hash: bytes
    """Over key, value and headers."""
