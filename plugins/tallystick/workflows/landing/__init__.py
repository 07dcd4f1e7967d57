"""A run: each batch landed, and what must be said loudly afterwards."""
