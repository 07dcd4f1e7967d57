"""Airflow DAG file without a DAG: its import error names what is wrong in the feed files."""

from tallystick.orchestration.factory import airflow_dag_problems

airflow_dag_problems()
