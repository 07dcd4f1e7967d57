"""Settings: feed files and connections, as immutable values; no client, no Airflow."""
