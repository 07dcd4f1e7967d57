"""Pages inside Airflow: what the ledger says of feeds, runs and findings, in a browser."""
