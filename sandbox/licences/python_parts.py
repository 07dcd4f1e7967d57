"""The Python packages of the pins, each with the licence that its metadata names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from sandbox.entry.layout import KERBEROS_REQUIREMENTS, REQUIREMENTS
from sandbox.licences.looked_up import LOOKED_UP
from sandbox.licences.names import UNKNOWN, licence_named


def pins() -> dict[str, str]:
    """Every pinned package: name to version."""
    texts = [file.read_text() for file in (REQUIREMENTS, KERBEROS_REQUIREMENTS)]
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", "\n".join(texts), re.MULTILINE))


def python_parts() -> dict[str, str]:
    """Every pin, with its licence; an unknown one comes with what the package's maker says."""
    return {f"{name} {pin}": _licence_of(name, pin) for name, pin in pins().items()}


def _licence_of(name: str, pin: str) -> str:
    if f"{name} {pin}" in LOOKED_UP:
        return LOOKED_UP[f"{name} {pin}"]
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        return f"{UNKNOWN}: not installed here"
    if installed.version != pin:
        return f"{UNKNOWN}: {installed.version} is installed here"
    said = list(_said_by(installed))
    named = next((found for each in said if (found := licence_named(each))), None)
    return named or f"{UNKNOWN}: {'; '.join(said)}"


def _said_by(installed: Distribution) -> Iterator[str]:
    """What its metadata says of its licence, the most exact first."""
    headers = installed.metadata
    for key in ("License-Expression", "License"):
        # Some put the whole text there: the first line has its name.
        for text in headers.get_all(key) or []:
            yield from text.strip().splitlines()[:1]
    classifiers = [
        each.rpartition(" :: ")[2]
        for each in headers.get_all("Classifier") or []
        if each.startswith("License :: OSI Approved :: ")
    ]
    # Several could all count, or one of them: no name for that here.
    if len(classifiers) == 1:
        yield classifiers[0]
