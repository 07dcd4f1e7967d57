"""Kerberos: a KDC with a realm, keytabs and tickets of the sandbox's own.

The system's own KDC, its configuration and its tickets are never touched.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from typing_extensions import override

from sandbox.entry.system import ensure_kerberos
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST, answers
from sandbox.service import Home, Service

REALM: Final = "TALLYSTICK.TEST"
_LIBRARY: Final = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {realm} = {{
  kdc = {host}:{port}
 }}
"""
_SERVER: Final = """\
[kdcdefaults]
 kdc_listen = {host}:{port}
 kdc_tcp_listen = {host}:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  max_life = 10h
 }}
[logging]
 kdc = STDERR
"""


class Kdc(Service):
    """Gives tickets to the principals it was made with; ready when it listens."""

    def __init__(self, home: Home, name: str, principals: Sequence[str]) -> None:
        """`principals`: without realm; each has its key in a keytab of its own."""
        super().__init__(home, name, port_names=(name,))
        self._principals = principals

    @property
    @override
    def address(self) -> str:
        return f"{HOST}:{self.home.ports[self.name]}"

    @property
    @override
    def memory(self) -> str:
        return "a few MB"

    @property
    def config(self) -> Path:
        """The krb5.conf of clients, Java's too."""
        return self.home.directory / self.name / "krb5.conf"

    @property
    def client_environment(self) -> Mapping[str, str]:
        """What leads a program to this realm."""
        return {
            "KRB5_CONFIG": str(self.config),
            "JAVA_TOOL_OPTIONS": f'"-Djava.security.krb5.conf={self.config}"',
        }

    @override
    def environment(self) -> Mapping[str, str]:
        own = {"KRB5_CONFIG": self.config, "KRB5_KDC_PROFILE": self.folder / "kdc.conf"}
        return {**os.environ, **{key: str(value) for key, value in own.items()}}

    @override
    def prepare(self) -> None:
        ensure_kerberos()
        facts = {"realm": REALM, "host": HOST, "folder": self.folder}
        facts["port"] = self.home.ports[self.name]
        self.config.write_text(_LIBRARY.format(**facts))
        (self.folder / "kdc.conf").write_text(_SERVER.format(**facts))
        if (self.folder / "made").exists():
            return
        for leftover in [*self.folder.glob("principal*"), *self.folder.glob("*.keytab")]:
            leftover.unlink()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", self.home.state.secret(self.name))
        for each in self._principals:
            self._run("kadmin.local", "-r", REALM, "-q", f"addprinc -randkey {each}")
            keytab = f'ktadd -k "{self.keytab(each)}" {each}'
            self._run("kadmin.local", "-r", REALM, "-q", keytab)
        (self.folder / "made").touch()

    def keytab(self, principal: str) -> Path:
        """The file with the principal's key; its owner alone may read it."""
        return self.folder / f"{principal.replace('/', '-')}.keytab"

    def log_in(self, principal: str, cache: Path) -> None:
        """Get the principal a ticket, into this cache."""
        argv = ["kinit", "-k", "-t", self.keytab(principal), "-c", cache, f"{principal}@{REALM}"]
        self._run(*map(str, argv))

    @override
    def command(self) -> list[str]:
        return ["/usr/sbin/krb5kdc", "-n", "-r", REALM]

    @override
    def missing(self) -> str | None:
        return None if answers(self.home.ports[self.name]) else "it does not answer"

    def _run(self, *argv: str) -> None:
        env = {**self.environment(), "PATH": f"{os.environ['PATH']}{os.pathsep}/usr/sbin"}
        with self.log.open("ab") as out:
            done = subprocess.run(
                argv, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, check=False
            )
        if done.returncode != 0:
            raise ServiceFailed(self.name, f"{argv[0]} failed", self.log)
