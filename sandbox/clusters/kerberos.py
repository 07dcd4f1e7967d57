"""A HDFS that believes nobody without a ticket, and speaks https under an authority of its own."""

from __future__ import annotations

import json
import os
import ssl
from base64 import b64encode
from collections.abc import Generator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import httpx
from typing_extensions import override

from sandbox.clusters.authority import Authority
from sandbox.clusters.cluster import Cluster
from sandbox.clusters.kdc import REALM, Kdc
from sandbox.connections import SPARK_MASTER
from sandbox.entry.environment import ensure_kerberos_library
from sandbox.entry.jars import connector_jars, ensure_jars
from sandbox.service import Home, Service
from sandbox.services.hdfs import ANSWER_SECONDS, DataNode, Family, NameNode, site_xml

# Tickets are for names: an address has none.
PLACE: Final = "localhost"
SUPERUSER: Final = f"hdfs/{PLACE}"
WEB: Final = f"HTTP/{PLACE}"
CLIENT: Final = "etl"
ROOT: Final = "/data"
"""The directory that belongs to the client."""


class KerberosDataNode(DataNode):
    """With it the file system can be written, so the client is given a directory then."""

    @override
    def provision(self) -> None:
        for query in (
            {"op": "MKDIRS", "permission": "755"},
            {"op": "SETOWNER", "owner": CLIENT, "group": CLIENT},
        ):
            url = f"{self.family.scheme}://{self.family.at('namenode-http')}/webhdfs/v1{ROOT}"
            self.family.send("PUT", url, query).raise_for_status()


class Kerberos(Cluster):
    """A KDC, a NameNode and a DataNode; `etl` is who may write below one directory."""

    name = "kerberos"
    title = "HDFS with Kerberos"

    def __init__(self, home: Home) -> None:
        super().__init__(home)
        self.kdc = Kdc(home, "kerberos-kdc", (SUPERUSER, WEB, CLIENT))
        self.authority = Authority(home.directory / self.name / "tls")
        family = Family(
            home,
            self.name,
            host=PLACE,
            scheme="https",
            core_site=self._core_site,
            hdfs_site=self._hdfs_site,
            prepare=self._prepare,
            java_options=(f"-Djava.security.krb5.conf={self.kdc.config}",),
            send=partial(self.send_as, SUPERUSER),
        )
        self.family = family
        self.namenode = NameNode(family)
        self.datanode = KerberosDataNode(family, self.namenode)

    @property
    @override
    def services(self) -> Sequence[Service]:
        return (self.kdc, self.namenode, self.datanode)

    @override
    def start(self) -> None:
        ensure_kerberos_library()
        ensure_jars("spark-kafka")  # the connections name them
        self.kdc.start()
        if not self.datanode.is_running:
            self.home.ports.claim(*self.datanode.port_names)
        self.namenode.start(wait=False)
        self.datanode.start(wait=False)
        self.namenode.wait()
        self.datanode.wait()

    @property
    def principal(self) -> str:
        """As whom clients log in."""
        return f"{CLIENT}@{REALM}"

    @property
    def environment(self) -> Mapping[str, str]:
        """What clients need beside connections: where the realm is, and no ticket of their own."""
        return self.kdc.client_environment

    @override
    def connections(self) -> Mapping[str, str]:
        by_keytab = {"principal": self.principal, "keytab": str(self.kdc.keytab(CLIENT))}
        web = {"use_ssl": True, "verify": str(self.authority.ca), "kerberos": True}
        hdfs = {
            "conn_type": "webhdfs",
            "host": PLACE,
            "port": self.home.ports[self.family.named("namenode-http")],
            "extra": {"fs": self.namenode.address, **web, **by_keytab},
        }
        jars = connector_jars()
        spark = {
            "conn_type": "spark",
            "host": SPARK_MASTER,
            "extra": {"jars": jars, "hadoop-conf-dir": str(self.family.conf), **by_keytab},
        }
        return {
            "AIRFLOW_CONN_WEBHDFS_KERBEROS": json.dumps(hdfs),
            "AIRFLOW_CONN_SPARK_KERBEROS": json.dumps(spark),
        }

    def _core_site(self) -> Mapping[str, str]:
        web = "hadoop.http.authentication"
        return {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.rpc.protection": "privacy",
            # These users are no users of the machine.
            "hadoop.user.group.static.mapping.overrides": f"hdfs=hdfs;{CLIENT}={CLIENT}",
            # Without it WebHDFS lets everybody in, and refuses what he asks for.
            "hadoop.http.filter.initializers": (
                "org.apache.hadoop.security.AuthenticationFilterInitializer"
            ),
            f"{web}.type": "kerberos",
            f"{web}.kerberos.principal": f"{WEB}@{REALM}",
            f"{web}.kerberos.keytab": str(self.kdc.keytab(WEB)),
            f"{web}.signature.secret.file": str(self.family.conf / "cookies.secret"),
            f"{web}.simple.anonymous.allowed": "false",
        }

    def _hdfs_site(self) -> Mapping[str, str]:
        found = {
            # With both of these a DataNode needs no port that is root's.
            "dfs.http.policy": "HTTPS_ONLY",
            "dfs.data.transfer.protection": "privacy",
            "dfs.block.access.token.enable": "true",
            "dfs.web.authentication.kerberos.principal": f"{WEB}@{REALM}",
            "dfs.web.authentication.kerberos.keytab": str(self.kdc.keytab(WEB)),
        }
        for daemon in ("namenode", "datanode"):
            found[f"dfs.{daemon}.kerberos.principal"] = f"{SUPERUSER}@{REALM}"
            found[f"dfs.{daemon}.keytab.file"] = str(self.kdc.keytab(SUPERUSER))
            found[f"dfs.{daemon}.kerberos.internal.spnego.principal"] = f"{WEB}@{REALM}"
        return found

    def _prepare(self, conf: Path) -> None:
        """The certificate of both daemons, and what their cookies are signed with."""
        password = self.home.state.secret("kerberos-key-store")
        store = self.authority.key_store(PLACE, password)
        settings = {
            "ssl.server.keystore.location": str(store),
            "ssl.server.keystore.type": "PKCS12",
            "ssl.server.keystore.password": password,
            "ssl.server.keystore.keypassword": password,
        }
        for name, text in (
            ("ssl-server.xml", site_xml(settings)),
            ("cookies.secret", self.home.state.secret("kerberos-cookies")),
        ):
            path = conf / name
            path.touch(mode=0o600)
            path.write_text(text)

    def send_as(
        self, principal: str, method: str, url: str, query: Mapping[str, str]
    ) -> httpx.Response:
        """The answer to a request of this principal."""
        tickets = _Tickets(self.kdc, principal)
        trust = ssl.create_default_context(cafile=str(self.authority.ca))
        return httpx.request(
            method,
            url,
            params=query,
            auth=tickets,
            verify=trust,
            timeout=ANSWER_SECONDS,
            trust_env=False,
            follow_redirects=True,
        )


class _Tickets(httpx.Auth):
    """Shows each server a ticket of the principal."""

    def __init__(self, kdc: Kdc, principal: str) -> None:
        self._kdc, self._principal = kdc, principal

    @override
    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        import gssapi  # compiled by then

        # The library reads it from the environment alone.
        os.environ["KRB5_CONFIG"] = str(self._kdc.config)
        keytab = self._kdc.keytab(self._principal)
        # Another KDC of this process has the same realm, and one made anew has other keys.
        cache = f"MEMORY:{keytab}-{keytab.stat().st_mtime_ns}"
        store = {"client_keytab": str(keytab), "ccache": cache}
        name = gssapi.Name(f"{self._principal}@{REALM}", gssapi.NameType.kerberos_principal)
        credentials = gssapi.Credentials(name=name, usage="initiate", store=store)
        server = gssapi.Name(f"HTTP@{request.url.host}", gssapi.NameType.hostbased_service)
        token = gssapi.SecurityContext(name=server, creds=credentials, usage="initiate").step()
        request.headers["Authorization"] = f"Negotiate {b64encode(token or b'').decode()}"
        yield request
