"""Adapters of Spark: what runs on the cluster, and what starts it."""
