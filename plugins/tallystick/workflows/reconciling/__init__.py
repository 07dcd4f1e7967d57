"""The ledger, the broker and HDFS asked again, and what they say reported."""
