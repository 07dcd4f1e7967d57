#!/bin/sh
# Formats the log directory once, then becomes the broker.
set -eu
if [ ! -f /var/lib/kafka/meta.properties ]; then
    id=$(java -cp '/opt/kafka/*' kafka.tools.StorageTool random-uuid)
    java -cp '/opt/kafka/*' kafka.tools.StorageTool format -t "$id" -c /etc/kafka/server.properties
fi
exec java -Xmx512m -cp '/opt/kafka/*' kafka.Kafka /etc/kafka/server.properties
