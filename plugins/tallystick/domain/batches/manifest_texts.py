"""A manifest's text in two parts: what it says, and the hashes of its last records. Knows no table.

A hash can't be made smaller, and stands in the rows of the files too. So it may go when its batch
is old. The rest stays, and names the sha256 of the whole text: who has the rows can make the text
again, and see that it is the very one.

1. `whole_text(p.account, p.hashes) == text` with `p = parted(text)`, for every manifest's text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

_OF_WHOLE: Final = "sha256"


@dataclass(frozen=True, slots=True)
class PartedText:
    """A manifest's text without hashes, and these."""

    account: str
    hashes: tuple[str, ...]
    """As hexadecimal digits: one for each range with a row, in their order."""


def parted(text: str) -> PartedText:
    """Both parts of a manifest's text."""
    document = json.loads(text)
    hashes = []
    for anchor in _anchors(document):
        hashes.append(anchor["hash"])
        anchor["hash"] = None
    document[_OF_WHOLE] = sha256(text.encode()).hexdigest()
    return PartedText(_json(document), tuple(hashes))


def whole_text(account: str, hashes: Sequence[str]) -> str:
    """The manifest's text again; ValueError when these parts are not of one text."""
    document = json.loads(account)
    digest = document.pop(_OF_WHOLE)
    for anchor, each in zip(_anchors(document), hashes, strict=True):
        anchor["hash"] = each
    text = _json(document)
    if sha256(text.encode()).hexdigest() != digest:
        raise ValueError("the hashes are not those of this manifest")
    return text


def _anchors(document: Any) -> Iterator[dict[str, Any]]:
    return (each["anchor"] for each in document["ranges"] if each["anchor"])


def _json(document: Any) -> str:
    return json.dumps(document, separators=(",", ":")) + "\n"
