#!/bin/sh
# Two databases and two roles on one server; neither role may enter the other's database.
set -eu
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    -v airflow="$AIRFLOW_DB_PASSWORD" -v ledger="$LEDGER_DB_PASSWORD" <<'SQL'
CREATE ROLE airflow LOGIN PASSWORD :'airflow';
CREATE ROLE tallystick LOGIN PASSWORD :'ledger';
CREATE DATABASE airflow OWNER airflow;
CREATE DATABASE tallystick OWNER tallystick;
REVOKE CONNECT ON DATABASE airflow FROM PUBLIC;
REVOKE CONNECT ON DATABASE tallystick FROM PUBLIC;
SQL
