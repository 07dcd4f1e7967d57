"""Airflow DAG file without a DAG: its import error names what is wrong in the feed files."""

import os

from tallystick.orchestration.factory import require_valid
from tallystick.settings.feeds import feeds_folder

require_valid(feeds_folder(os.environ))
