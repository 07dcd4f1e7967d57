#!/bin/bash
# In the order of the official image's entrypoint: a first start on a socket alone, for the scripts, and then the server.
set -euo pipefail
export POSTGRES_USER=postgres
if [ "$(id -u)" = 0 ]; then
    install -d -o postgres -m 700 "$PGDATA"
    exec gosu postgres "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username=postgres --pwfile=<(echo "$POSTGRES_PASSWORD")
    echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
    printf '%s\n' "listen_addresses = '*'" "unix_socket_directories = '/var/run/postgresql'" >> "$PGDATA/postgresql.conf"
    export PGHOST=/var/run/postgresql
    pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
    for script in /docker-entrypoint-initdb.d/*.sh; do "$script"; done
    pg_ctl -D "$PGDATA" -m fast -w stop
    unset PGHOST
fi
exec "$@"
