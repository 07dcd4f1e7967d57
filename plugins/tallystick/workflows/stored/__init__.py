"""What lies in HDFS: listed and read, nothing changed."""
