"""Airflow DAG file: the DAGs of every feed whose file is right; feed_problems.py shows the rest.

In a task it makes that task's own DAG alone.
"""

import os

from airflow.sdk import get_parsing_context

from tallystick.orchestration.factory import build_dags
from tallystick.settings.feeds import feeds_folder

globals().update(build_dags(feeds_folder(os.environ), get_parsing_context().dag_id))
