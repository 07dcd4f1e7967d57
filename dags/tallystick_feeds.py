"""Airflow DAG file: the DAGs of every feed whose file is right; feed_problems.py shows the rest."""

import os

from tallystick.orchestration.factory import build_all
from tallystick.settings.feeds import feeds_folder

globals().update(build_all(feeds_folder(os.environ)))
