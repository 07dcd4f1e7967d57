"""The page that names every licence, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from sandbox.licences.looked_up import BUILD, DEBIAN, IMAGES, LOOKED_UP, OTHERS
from sandbox.licences.names import Part, copyleft_of


def page(packages: Sequence[Part], jars: Sequence[Part]) -> str:
    """The whole page, with what a person has looked up."""
    template = (Path(__file__).parent / "licences.md.jinja").read_text()
    # Markdown: nothing is escaped.
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    text = environment.from_string(template).render(
        packages=packages,
        jars=jars,
        others=OTHERS,
        looked_up=LOOKED_UP,
        debian=DEBIAN,
        images=IMAGES,
        build=BUILD,
        bundled=sum(1 for each in files("pyspark") or () if each.suffix == ".jar"),
        copyleft_of=copyleft_of,
    )
    return text.replace("|  |", "| |")
