"""Offsets of topic partitions: ranges and sets of them."""
