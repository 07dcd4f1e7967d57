"""What no metadata says plainly: looked up by a person, each with its source.

A look-up counts for one version. What comes from a distribution or a registry of images has the
version that it has there.
"""

from __future__ import annotations

from typing import Final

# Where no other place is named, the wheel's licence file says it.
LOOKED_UP: Final = {
    "argcomplete 3.7.2": "Apache-2.0",
    "arrow 1.4.0": "Apache-2.0",
    "colorama 0.4.6": "BSD-3-Clause",
    "confluent-kafka 2.16.1": "Apache-2.0",
    "httpx2-jsfetch 1.0": "BSD-3-Clause",  # License-Expression
    "itsdangerous 2.2.0": "BSD-3-Clause",
    "jinja2 3.1.6": "BSD-3-Clause",
    "libcst 1.9.0": "MIT AND PSF-2.0 AND Apache-2.0",
    # No licence file is in the wheel. SPDX-License-Identifier in the source:
    # https://github.com/OpenLineage/OpenLineage/blob/main/integration/sql/iface-py/src/lib.rs
    "openlineage-sql 1.54.0": "Apache-2.0",
    "psycopg2-binary 2.9.13": "LGPL-3.0-or-later with an exception for OpenSSL",
    "py4j 0.10.9.9": "BSD-3-Clause",
    "python-daemon 3.1.2": "Apache-2.0",  # LICENSE.ASF-2, and License
    "pyyaml-ft 8.0.0": "MIT",
    "sqlparse 0.6.1": "BSD-3-Clause",
    "text-unidecode 1.3": "Artistic License OR GPL-2.0-or-later",
    "uvloop 0.23.0": "MIT OR Apache-2.0",
    "stax2-api-4.2.1": "BSD-2-Clause",  # META-INF/LICENSE in the jar
}

OTHERS: Final = {
    "sqlalchemy-jsonfield 1.0.2": "Apache-2.0",  # License
    "sqlalchemy-utils 0.42.1": "BSD-3-Clause",  # License-Expression
    "uc-micro-py 2.0.0": "MIT",  # License
}
"""Only in environments of `tests/installed`; by the wheel's metadata."""

_KERBEROS: Final = "MIT Kerberos' own, much like BSD-2-Clause"
DEBIAN: Final = {
    "openjdk-17-jre-headless": "GPL-2.0-only WITH Classpath-exception-2.0",
    "maven": "Apache-2.0",
    "chromium": "BSD-3-Clause, and of libraries in it LGPL, MPL and others",
    "postgresql": "PostgreSQL",
    "pgbouncer": "ISC",
    "krb5-kdc": _KERBEROS,
    "krb5-admin-server": _KERBEROS,
    "krb5-user": _KERBEROS,
    "libkrb5-dev": _KERBEROS,
    "gcc": "GPL-3.0-or-later; its runtime library WITH GCC-exception-3.1",
    "python3-dev": "PSF-2.0",
    "python3.11-venv": "PSF-2.0",
    "procps": "GPL-2.0-or-later AND LGPL-2.1-or-later",
    "curl": "curl",
    # For an engine of ours, and for its stand-ins of base images.
    "runc": "Apache-2.0",
    "iptables": "GPL-2.0-or-later",
    "debootstrap": "MIT",
    "docker.io": "Apache-2.0",
    "docker-cli": "Apache-2.0",
    "docker-compose": "Apache-2.0",
    "docker-buildx": "Apache-2.0",
    "containerd": "Apache-2.0",
    "tini": "MIT",
    "openjdk-17-jdk-headless": "GPL-2.0-only WITH Classpath-exception-2.0",
    "ca-certificates": "GPL-2.0-or-later AND MPL-2.0",
    "python3": "PSF-2.0",
    "python3-pip": "MIT",
    "gosu": "Apache-2.0",
}
"""By the package's `copyright` file."""

_OPENJDK: Final = "GPL-2.0-only WITH Classpath-exception-2.0 (OpenJDK)"
IMAGES: Final = {
    "maven:3.9-eclipse-temurin-17": f"Apache-2.0 (Maven), {_OPENJDK}",
    "eclipse-temurin:17-jre": _OPENJDK,
    "python:3.11-slim-bookworm": "PSF-2.0",
    "postgres:18.6": "PostgreSQL",
}
"""By the image's own page."""

BUILD: Final = {
    "hatchling": "MIT",
    "setuptools": "MIT",
    "maven-dependency-plugin 3.6.1": "Apache-2.0",
    "license-maven-plugin 2.4.0": "LGPL-3.0",
}
"""By their own metadata."""
