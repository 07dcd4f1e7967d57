"""The file stores that keep one contract; a plugin of the test modules that name it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tallystick.ports.file_store import FileStore
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tests.support.local_directory import LocalFileStore


@pytest.fixture(params=["local", pytest.param("webhdfs", marks=pytest.mark.sandbox)])
def store(request: pytest.FixtureRequest) -> FileStore:
    """A local directory, and a real HDFS."""
    if request.param == "local":
        return LocalFileStore(request.getfixturevalue("tmp_path") / "store")
    hdfs = request.getfixturevalue("hdfs")
    return WebHdfsFileStore(NameNodes([hdfs.webhdfs_url], user=hdfs.user), hdfs.hdfs_url)


@pytest.fixture
def root() -> str:
    """A directory of the test's own in the store, not made yet."""
    return f"/contract/{uuid4().hex}"
