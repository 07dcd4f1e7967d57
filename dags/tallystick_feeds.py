"""Airflow DAG file: the DAGs of every feed whose file is right; feed_problems.py shows the rest."""

from tallystick.orchestration.factory import airflow_dags

globals().update(airflow_dags())
