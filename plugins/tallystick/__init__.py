"""Tallystick lands Kafka topics in HDFS exactly once, and proves it offset by offset."""

__version__ = "0.1.0"
