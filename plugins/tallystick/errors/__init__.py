"""Every error of Tallystick: what happened, where, what to do next, and if a retry can help.

An error is for a story that could not go on. Nothing to land, a batch that is committed already, an
expired range: these are values, not errors.
"""

from __future__ import annotations

from tallystick.errors.configuration import *
from tallystick.errors.ingestion import *
from tallystick.errors.ledger import *
from tallystick.errors.source import *
from tallystick.errors.spark import *
from tallystick.errors.storage import *
