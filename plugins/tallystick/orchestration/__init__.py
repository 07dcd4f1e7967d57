"""Airflow's side: DAGs made from feeds, tasks that call the workflows. Decides no offset."""
