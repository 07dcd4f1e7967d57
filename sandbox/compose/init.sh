#!/bin/sh
# Brings everything up to this version, at each start: Airflow's tables, the ledger, the pool, and the feeds' root in HDFS.
set -eu
airflow db migrate
python -m tallystick ledger migrate
airflow pools set spark_local 1 'Spark drivers on this machine'
# HDFS's superuser makes the root for the user that lands (docs/install.md, "The first feed").
root=http://namenode:9870/webhdfs/v1/data/landing
curl -fsS -X PUT "$root?op=MKDIRS&user.name=hdfs"
curl -fsS -X PUT "$root?op=SETOWNER&owner=airflow&group=airflow&user.name=hdfs"
