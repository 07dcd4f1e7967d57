"""Batches: what they claim, their states, their files, their manifest and their paths."""
