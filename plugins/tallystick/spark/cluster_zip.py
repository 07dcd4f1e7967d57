"""Packs what travels to the cluster: what lands, searches and scrubs, with their imports.

The archive's bytes depend on the sources alone, so the same code always gives the same file.
"""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).resolve().parents[1]
# Files, and directories with all their modules; they need the standard library and pyspark alone.
TRAVELS: Final = (
    "__init__.py",
    "domain",
    "errors",
    "spark/__init__.py",
    "spark/application.py",
    "spark/begun.py",
    "spark/causes.py",
    "spark/landed_files.py",
    "spark/landing.py",
    "spark/parent_death.py",
    "spark/scrubbing.py",
    "spark/searching.py",
    "spark/session_settings.py",
    "spark/slice_sums.py",
)
ARCHIVE_NAME: Final = "tallystick.zip"
_OLDEST_ZIP_DATE: Final = (1980, 1, 1, 0, 0, 0)


def write_cluster_zip(target: Path) -> None:
    """Write the archive for `--py-files`; a reader of the target sees it whole or not at all."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for source in _sources():
                entry = zipfile.ZipInfo(
                    f"{PACKAGE.name}/{source.relative_to(PACKAGE).as_posix()}", _OLDEST_ZIP_DATE
                )
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, source.read_bytes())
        temporary.chmod(0o644)  # on a cluster, another user may run the driver
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _sources() -> Iterator[Path]:
    for name in TRAVELS:
        place = PACKAGE / name
        if place.is_dir():
            yield from sorted(place.rglob("*.py"))
        else:
            yield place
