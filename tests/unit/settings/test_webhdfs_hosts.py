"""A connection to HDFS is https as a whole or http as a whole, and never http by mistake."""

from __future__ import annotations

import pytest

from tallystick.errors import ConfigurationError
from tallystick.settings.connections import Connection
from tallystick.settings.hdfs_connection import WebHdfsConnection

BOTH = ("https://nn1:9871", "https://nn2:9871")


def urls_of(host: str, **extra: object) -> tuple[str, ...]:
    extra = {"fs": "hdfs://nn", **extra}
    return WebHdfsConnection.of(Connection("c", "webhdfs", host, extra=extra)).urls


@pytest.mark.parametrize(
    ("host", "extra", "urls"),
    [
        ("https://nn1,https://nn2", {}, BOTH),
        (" https://nn1; HTTPS://nn2/", {}, BOTH),
        ("nn1,nn2", {"use_ssl": True}, BOTH),
        ("https://nn1,nn2", {"use_ssl": "true"}, BOTH),
        ("nn1,https://nn2:9871", {"use_ssl": True}, BOTH),
        ("http://nn1", {"use_ssl": False}, ("http://nn1:9870",)),
        ("nn1", {"use_ssl": ""}, ("http://nn1:9870",)),
        ("https://nn1", {"use_ssl": None}, ("https://nn1:9871",)),
    ],
)
def test_the_scheme_of_each_host_counts(
    host: str, extra: dict[str, object], urls: tuple[str, ...]
) -> None:
    assert urls_of(host, **extra) == urls


@pytest.mark.parametrize(
    ("host", "extra"),
    [
        ("nn1,https://nn2", {}),
        ("nn1;https://nn2", {}),
        ("https://nn1,nn2", {}),
        ("http://nn1,nn2,https://nn3", {}),
        ("http://nn1,https://nn2", {}),
        ("http://nn1,https://nn2", {"use_ssl": True}),
        ("https://nn1", {"use_ssl": False}),
        ("nn1,https://nn2", {"use_ssl": "false"}),
        ("http://nn1", {"use_ssl": True}),
        ("http://nn1,nn2", {"use_ssl": True}),
    ],
)
def test_schemes_that_contradict_each_other_are_refused(
    host: str, extra: dict[str, object]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        urls_of(host, **extra)
    assert caught.value.describe() == (
        f"connection c: host is {host!r}; accepted: https:// or http:// before every host, or"
        " before none, as extra use_ssl has it."
    )


def test_a_password_in_a_host_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="hosts alone") as caught:
        urls_of("https://ada:s3cret@nn1")
    assert "s3cret" not in repr(caught.value)
