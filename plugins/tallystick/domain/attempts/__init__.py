"""Attempts: what they may hold that no commit does, and what becomes of it."""
