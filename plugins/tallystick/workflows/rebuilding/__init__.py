"""A ledger that was lost, or is behind, from what was published."""
