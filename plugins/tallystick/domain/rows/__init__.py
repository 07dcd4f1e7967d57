"""Rows and records: their hashes, and how full reads and second readers see them."""
