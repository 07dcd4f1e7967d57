"""Writes ``docs/licences.md`` anew, with this environment's packages and what Maven resolves.

Run it where everything is installed, Kerberos' library too; otherwise some stay unknown.
"""

from __future__ import annotations

import sys

from sandbox.entry.layout import ROOT
from sandbox.licences.java_parts import java_parts
from sandbox.licences.names import UNKNOWN
from sandbox.licences.page import page
from sandbox.licences.python_parts import python_parts


def main() -> int:
    """0 if every licence is known; 1 otherwise, with the unknown ones on standard error."""
    packages, jars = python_parts(), java_parts()
    (ROOT / "docs" / "licences.md").write_text(page(packages, jars))
    unknown = [each for each in (*packages, *jars) if UNKNOWN in each.licence]
    for each in unknown:
        sys.stderr.write(f"{each.name} {each.version}: {each.licence}\n")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
