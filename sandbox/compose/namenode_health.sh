#!/bin/sh
# Healthy once a file can be written: a DataNode lives, its room is known, and safe mode is over.
set -eu
state=$(curl -fs 'http://127.0.0.1:9870/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState')
for sign in '"NumLiveDataNodes" : [1-9]' '"CapacityTotal" : [1-9]' '"FSState" : "Operational"'; do
    echo "$state" | grep -q "$sign"
done
