"""The connector that the wheel's user fetches is the one that everything here is landed with."""

from __future__ import annotations

import hashlib

from sandbox.entry.jars import ensure_jars
from tallystick.spark.connector_download import CONNECTOR


def test_the_jars_of_a_wheels_user_are_the_sandboxs_byte_for_byte() -> None:
    fetched = {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in ensure_jars("spark-kafka").glob("*.jar")
    }

    assert {each.name: each.sha256 for each in CONNECTOR} == fetched
