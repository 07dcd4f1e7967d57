"""Properties are judged by what they find, never by how long they take on a busy machine."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tallystick", deadline=None, max_examples=100)
settings.load_profile("tallystick")
