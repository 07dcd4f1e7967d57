"""Writes ``docs/licences.md`` anew, with this environment's packages and what Maven resolves.

Run it where everything is installed, Kerberos' library too; otherwise some stay unknown.
"""

from __future__ import annotations

import sys

from sandbox.entry.layout import POMS, ROOT
from sandbox.licences.java_parts import CONNECTOR, java_parts
from sandbox.licences.names import UNKNOWN
from sandbox.licences.page import page
from sandbox.licences.python_parts import python_parts


def main() -> int:
    """0 if every licence is known; 1 otherwise, with the unknown ones on standard error."""
    others = sorted({each.parent.name for each in POMS.glob("*/pom.xml")} - {CONNECTOR})
    packages, connector, jars = python_parts(), java_parts([CONNECTOR]), java_parts(others)
    (ROOT / "docs" / "licences.md").write_text(page(packages, connector, jars))
    unknown = {
        part: licence
        for part, licence in (packages | connector | jars).items()
        if UNKNOWN in licence
    }
    for part, licence in unknown.items():
        sys.stderr.write(f"{part}: {licence}\n")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
