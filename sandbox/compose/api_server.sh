#!/bin/sh
# Airflow opens its file of passwords for writing, so it is made in here, and no file of the host's is mounted.
set -eu
umask 077
python -c 'import json, os; print(json.dumps({user: os.environ[user.upper() + "_PASSWORD"] for user in ("admin", "op")}))' \
    > "$AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"
exec env -u ADMIN_PASSWORD -u OP_PASSWORD airflow api-server --host 0.0.0.0 --port 8080
