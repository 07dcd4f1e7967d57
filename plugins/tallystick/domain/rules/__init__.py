"""Reconciliation: every rule, what it finds, and what ends it."""
