"""What companies have between their topics and their HDFS: services on request, by ``--with``."""
