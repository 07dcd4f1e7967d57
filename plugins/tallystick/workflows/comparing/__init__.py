"""The second reader compares what was landed with what the broker serves."""
