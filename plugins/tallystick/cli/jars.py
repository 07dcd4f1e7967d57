"""`jars`: Kafka's connector for Spark, fetched for who has no Maven."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tallystick.cli.answers import Answer, Block, deliver
from tallystick.cli.options import JsonOption
from tallystick.errors import ConfigurationError
from tallystick.report.documents import Document, Part
from tallystick.spark.connector_download import (
    CONNECTORS,
    DEFAULT,
    MAVEN_CENTRAL,
    fetch_connector,
)

REPOSITORY_VARIABLE = "TALLYSTICK_MAVEN_REPOSITORY"


class JarPart(Part):
    """One file of the connector."""

    file: str
    is_fetched: bool


class JarsDocument(Document):
    """`jars`."""

    format: str = "tallystick-jars-1"
    folder: str
    jars: Sequence[JarPart]


def jars(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to fill.")],
    repository: Annotated[
        str,
        typer.Option(
            "--repository",
            metavar="URL",
            envvar=REPOSITORY_VARIABLE,
            show_default=False,
            help=f"A Maven repository in the place of {MAVEN_CENTRAL}.",
        ),
    ] = MAVEN_CENTRAL,
    spark: Annotated[
        str,
        typer.Option("--spark", metavar="VERSION", help=f"The Spark: {', '.join(CONNECTORS)}."),
    ] = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Fetch Kafka's connector for Spark into a folder; what is there already stays."""
    deliver(lambda: _fetched(folder, repository, spark), as_json=as_json)


def _fetched(folder: Path, repository: str, spark: str) -> Answer:
    scheme = repository.partition("://")[0]  # the rest may hold a password
    if scheme not in ("https", "http"):
        raise ConfigurationError("the scheme of --repository", scheme, "https, http")
    if spark not in CONNECTORS:
        raise ConfigurationError("--spark", spark, ", ".join(CONNECTORS))
    place = folder.expanduser().absolute()
    try:
        found = list(fetch_connector(place, repository, spark))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigurationError("DIR", str(place), f"a folder to write to ({reason})") from error
    document = JarsDocument(
        folder=str(place),
        jars=[JarPart(file=path.name, is_fetched=is_new) for path, is_new in found],
    )
    blocks: list[Block] = [
        f"{'fetched' if each.is_fetched else 'there already'}: {each.file}"
        for each in document.jars
    ]
    blocks.append(f'In the Spark connection\'s extra: "jars": "{place}/*"')
    return Answer(document, blocks)
