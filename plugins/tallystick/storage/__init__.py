"""Adapters of the file store: HDFS through WebHDFS, and a local directory in its stead."""
