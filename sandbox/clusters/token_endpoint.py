"""Gives tokens of OAuth 2 to clients that know a secret, as a company's log-in does; over TLS.

A program of its own: ``python -m sandbox.clusters.token_endpoint PORT FOLDER``. The folder holds
what `TokenEndpoint.prepare` has written there.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import jwt
from typing_extensions import override

from sandbox.clusters.authority import Authority
from sandbox.entry.layout import ROOT
from sandbox.ports import HOST, answers
from sandbox.service import Home, Service
from sandbox.state import write_private

KEY_ID: Final = "sandbox"
SCOPE: Final = "kafka"
_LIFE_SECONDS: Final = 300
_CLIENTS, _KEYS = "clients.json", "keys.json"
_SIGNER: Final = "tokens"


class TokenEndpoint(Service):
    """The program, started; brokers check its tokens by the public keys in `keys`."""

    def __init__(self, home: Home, name: str, authority: Authority, users: Sequence[str]) -> None:
        super().__init__(home, name, port_names=[name])
        self._authority, self._users = authority, users

    def secret(self, user: str) -> str:
        """What the client of this name has to know."""
        return self.home.state.secret(f"{self.name}-{user}")

    @property
    @override
    def address(self) -> str:
        return f"https://{HOST}:{self.home.ports[self.name]}/token"

    @property
    @override
    def memory(self) -> str:
        return "30 MB"

    @property
    def keys(self) -> Path:
        """The file with the public keys (JWKS)."""
        return self.folder / _KEYS

    @override
    def prepare(self) -> None:
        signer = self._authority.identity(_SIGNER)
        private = jwt.algorithms.RSAAlgorithm(jwt.algorithms.RSAAlgorithm.SHA256).prepare_key(
            signer.key.read_text()
        )
        public: dict[str, Any] = json.loads(
            jwt.algorithms.RSAAlgorithm.to_jwk(private.public_key())  # type: ignore[union-attr]
        )
        named = public | {"kid": KEY_ID, "alg": "RS256", "use": "sig"}
        self.keys.write_text(json.dumps({"keys": [named]}))
        told = {
            "secrets": {user: self.secret(user) for user in self._users},
            "key": str(signer.key),
            "certificate": str(signer.certificate),
        }
        write_private(self.folder / _CLIENTS, json.dumps(told))

    @override
    def command(self) -> Sequence[str]:
        port = str(self.home.ports[self.name])
        return [sys.executable, "-P", "-m", __name__, port, str(self.folder)]

    @override
    def environment(self) -> Mapping[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT)}

    @override
    def missing(self) -> str | None:
        return None if answers(self.home.ports[self.name]) else "it does not accept connections"


class _Answers(BaseHTTPRequestHandler):
    """RFC 6749, client credentials: the client's name and secret come as a basic log-in."""

    secrets: Mapping[str, str]
    key: str

    def do_POST(self) -> None:
        """A token, or 401."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        client = self._client()
        if client is None:
            self._answer(401, {"error": "invalid_client"})
            return
        now = int(time.time())
        claims = {"sub": client, "iat": now, "exp": now + _LIFE_SECONDS, "scope": SCOPE}
        token = jwt.encode(claims, self.key, algorithm="RS256", headers={"kid": KEY_ID})
        told = {"access_token": token, "token_type": "Bearer", "expires_in": _LIFE_SECONDS}
        self._answer(200, told)

    def _client(self) -> str | None:
        kind, _, told = self.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return None
        client, _, secret = base64.b64decode(told).decode().partition(":")
        known = self.secrets.get(client, "")
        return client if known and hmac.compare_digest(known, secret) else None

    def _answer(self, status: int, document: Mapping[str, object]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a log of requests would name clients."""


def main(port: int, folder: Path) -> None:
    """Serve until the process is ended."""
    told = json.loads((folder / _CLIENTS).read_text())
    _Answers.secrets, _Answers.key = told["secrets"], Path(told["key"]).read_text()
    server = ThreadingHTTPServer((HOST, port), _Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(told["certificate"], told["key"])
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
