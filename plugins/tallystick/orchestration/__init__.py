"""Airflow's side: DAGs made from feeds, tasks that call the workflows. Decides nothing about offsets."""
