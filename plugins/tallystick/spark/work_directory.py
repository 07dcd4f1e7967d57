"""The private working directory of one spark-submit, with the code and the secrets in it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tallystick.spark.cluster_zip import ARCHIVE_NAME, write_cluster_zip
from tallystick.spark.kafka_access import SECRETS_FILE, secrets_text


@contextmanager
def work_directory(secrets: Mapping[str, str]) -> Iterator[Path]:
    """The directory, for this user only; gone afterwards.

    A process that is killed leaves it behind, in the system's directory for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="tallystick-") as name:
        directory = Path(name)
        write_cluster_zip(directory / ARCHIVE_NAME)
        if secrets:
            file = directory / SECRETS_FILE
            file.touch(mode=0o600)
            file.write_text(secrets_text(secrets), encoding="utf-8")
        yield directory
