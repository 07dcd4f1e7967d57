"""The jars that the Spark connection names, looked for on this machine before Spark is started.

Spark passes over a jar that is missing, and fails later with a stack trace about something else.
"""

from __future__ import annotations

import re
from glob import glob
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from tallystick.errors import ConfigurationError
from tallystick.spark.place import SparkPlace

# `local:` names a place on the cluster's nodes; other schemes are file systems that Spark asks.
_ELSEWHERE: Final = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*:")


def require_jars(place: SparkPlace) -> None:
    """Return when each jar that must lie on this machine is there; raises ConfigurationError."""
    missing = [each for each in place.jars if not _ELSEWHERE.match(each) and not _is_there(each)]
    if missing:
        raise ConfigurationError(
            "extra jars",
            ", ".join(missing),
            "full paths of files on this machine; `tallystick jars DIR` fetches them, and the"
            " sandbox has them after ./tallystick land or ./tallystick sandbox up",
            where="the Spark connection",
        )


def _is_there(jar: str) -> bool:
    # Spark resolves a relative path in a folder of its own, so there it never is.
    path = unquote(urlsplit(jar).path) if jar.startswith("file:") else jar
    return path.startswith("/") and (Path(path).exists() or bool(glob(path)))
