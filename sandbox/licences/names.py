"""A licence's name as SPDX has it, where what the maker says is plain; it never guesses."""

from __future__ import annotations

from typing import Final

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

UNKNOWN: Final = "unknown"

_WITH_EXCEPTION: Final = "GPL-2.0-only WITH Classpath-exception-2.0"
_PLAIN: Final = {
    "Apache-2.0": "apache 2|apache 2.0|apache 2.0 license|apache license 2.0|apache license v2.0"
    "|apache license, 2.0|apache license, version 2.0|apache software license - version 2.0"
    "|the apache license, version 2.0|the apache software license, version 2.0"
    "|http://www.apache.org/licenses/license-2.0",
    "BSD-2-Clause": "bsd 2-clause|bsd 2-clause license",
    # The Eclipse Distribution License and Go's have its words.
    "BSD-3-Clause": "3-clause bsd license|bsd 3-clause license|the bsd 3-clause license"
    "|modified bsd|revised bsd|go license|the go license"
    "|edl 1.0|eclipse distribution license - v 1.0|eclipse distribution license v. 1.0",
    "CDDL-1.0": "common development and distribution license (cddl) version 1.0",
    "CDDL-1.1": "cddl 1.1",
    "EPL-1.0": "eclipse public license - version 1.0",
    "EPL-2.0": "epl 2.0|eclipse public license - v 2.0|eclipse public license 2.0"
    "|eclipse public license v. 2.0",
    _WITH_EXCEPTION: "gpl2 w/ cpe|gpl-2.0-with-classpath-exception"
    "|gnu general public license, version 2 with the gnu classpath exception"
    "|the gnu general public license (gpl), version 2, with classpath exception",
    "ISC": "isc license|isc license (iscl)",
    "MIT": "mit license|the mit license|the mit license (mit)",
    "MIT OR Apache-2.0": "mit -or- apache license 2.0",
    "MPL-1.1": "mpl 1.1",
    "MPL-2.0": "mozilla public license 2.0 (mpl 2.0)",
    "PSF-2.0": "python software foundation license",
}
# Told in the maker's words: SPDX has no name for it, or more than one that it could be.
_AS_SAID: Final = {
    "Bouncy Castle Licence",
    "CDDL + GPLv2 with classpath exception",
    "CDDL v1.1 / GPL v2 dual license",
    "CDDL/GPLv2+CE",
    "Dual license consisting of the CDDL v1.1 and GPL v2",
    "LGPL 2.1",
    "LGPL, version 2.1",
    "Public Domain",
    "Public Domain, per Creative Commons CC0",
    "W3C license",
    "jQuery license",
}
_SPDX: Final = {said: name for name, all_of_it in _PLAIN.items() for said in all_of_it.split("|")}


def licence_named(said: str) -> str | None:
    """What a licence is called here; None if what was said is not plain."""
    if said in _AS_SAID:
        return said
    try:
        return _SPDX.get(said.casefold()) or str(canonicalize_license_expression(said))
    except InvalidLicenseExpression:
        return None
