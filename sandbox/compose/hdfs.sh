#!/bin/sh
# start-hdfs namenode|datanode: formats the NameNode once, then becomes the daemon.
set -eu
server=org.apache.hadoop.hdfs.server
case $1 in
    namenode) main=$server.namenode.NameNode ;;
    datanode) main=$server.datanode.DataNode ;;
    *) echo "start-hdfs: namenode or datanode, not '$1'" >&2; exit 2 ;;
esac
# Hadoop reaches into the JDK (HADOOP-19310).
set -- --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.nio=ALL-UNNAMED \
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED -Xmx512m -cp '/opt/www:/etc/hdfs:/opt/hdfs/*' "$main"
if [ "$main" = "$server.namenode.NameNode" ] && [ ! -d /var/lib/hdfs/name/current ]; then
    java "$@" -format -nonInteractive
fi
exec java "$@"
