"""One NameNode: a client of the `hdfs` package, and what its public verbs leave open.

1. The exclusive rename. `rename` nests into a directory that is there, and says that all went well.
   It can't be told `renameoptions=NONE`: one NameNode transaction, which refuses such a target.
2. Who is active. An observer answers every question that writes nothing, from what it knew a
   while ago.
3. Paths. Clients normalise them and expand '#LATEST' in them; ours are final.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from hdfs import Client, InsecureClient, TokenClient

from tallystick.errors import ConfigurationError
from tallystick.storage.session import Session

_KERBEROS_PACKAGE: Final = (
    "false, or true where the library requests-gssapi is installed (docs/install.md, A secured"
    " HDFS; it needs Kerberos' headers and a C compiler: apt-get install libkrb5-dev gcc"
    " python3-dev)"
)


@dataclass(frozen=True, slots=True)
class NameNode:
    """One NameNode, asked with the credentials that its client has put into the session."""

    hdfs: Any
    """A client of the package, for its public verbs."""
    session: Session
    timeout: tuple[float, float]
    proxy_user: str | None

    def rename_exclusive(self, source: str, target: str) -> bool | None:
        """None when the rename is done; else what a server says that has ignored the option."""
        answer = self.session.put(
            f"{self.hdfs.url.rstrip('/')}/webhdfs/v1{quote(source)}",
            params={
                "op": "RENAME",
                "destination": target,
                "renameoptions": "NONE",
                "doas": self.proxy_user,
            },
            timeout=self.timeout,
        )
        return bool(answer.json()["boolean"]) if answer.content else None

    def write_nothing(self) -> bool:
        """Ask for a change of the root directory that changes none: only an active one answers.

        A directory has no replication: HDFS says false, or that this user may not write there.
        """
        answer = self.session.put(
            f"{self.hdfs.url.rstrip('/')}/webhdfs/v1/",
            params={"op": "SETREPLICATION", "replication": "1", "doas": self.proxy_user},
            timeout=self.timeout,
        )
        return bool(answer.json()["boolean"])

    def date(self) -> str:
        """The header that says when it answers; empty if it doesn't."""
        answer = self.session.get(
            f"{self.hdfs.url.rstrip('/')}/webhdfs/v1/",
            params={"op": "GETFILESTATUS", "doas": self.proxy_user},
            timeout=self.timeout,
        )
        return str(answer.headers.get("Date", ""))


class _PathsAsTheyAre:
    """Comes before a client of the package; see 3."""

    def resolve(self, hdfs_path: str) -> str:
        return hdfs_path


class _InsecureClient(_PathsAsTheyAre, InsecureClient):
    pass


class _TokenClient(_PathsAsTheyAre, TokenClient):
    pass


class _KerberosClient(_PathsAsTheyAre, Client):
    """Says no name: the session's tickets do. The package's own client needs another library."""


def client_of(
    url: str, user: str | None, token: str | None, kerberos: bool, options: dict[str, Any]
) -> Any:
    """A client that puts into its session who asks; a token beats Kerberos, and both the user."""
    if token:
        return _TokenClient(url, token, **options)
    if not kerberos:
        return _InsecureClient(url, user=user, **options)
    return _KerberosClient(url, **options)


def negotiation_by(principal: str | None, keytab: str | None, where: str) -> Any:
    """Kerberos for a session; raises ConfigurationError where its library isn't installed."""
    try:
        from tallystick.storage.negotiation import Negotiation
    except ImportError as error:
        raise ConfigurationError("extra kerberos", True, _KERBEROS_PACKAGE, where=where) from error
    return Negotiation(principal, keytab)
