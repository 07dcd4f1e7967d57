"""Kafka, read only: bounds and identity of topics, and the proof of what lies between offsets."""
