#!/bin/sh
# Formats the log directory once, then becomes the broker. OUTSIDE_PORT: where the host reaches it.
set -eu
if [ ! -f /var/lib/kafka/meta.properties ]; then
    id=$(java -cp '/opt/kafka/*' kafka.tools.StorageTool random-uuid)
    java -cp '/opt/kafka/*' kafka.tools.StorageTool format -t "$id" -c /etc/kafka/server.properties
fi
exec java -Xmx512m -cp '/opt/kafka/*' kafka.Kafka /etc/kafka/server.properties \
    --override "advertised.listeners=INSIDE://kafka:9092,OUTSIDE://127.0.0.1:$OUTSIDE_PORT"
