"""Repair: what can be done about findings."""
