"""Deciding: facts in, a plan out; what a run performs and a dry run shows."""
