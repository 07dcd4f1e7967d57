"""kafka-python's network client, with two flaws of version 3.0.12 mended.

A broker that refuses a password answers and hangs up at once. The library throws an answer away
when the end of the stream comes with it, so a wrong password looks like a broker that is down. And
it forgets to close a socket whose connection or handshake failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.net.inet import KafkaNetSocket, create_connection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

_DIRECT = "direct"


def open_client(config: Mapping[str, object]) -> Any:
    """A client that connects at its first request."""
    whole = dict(config) | {"proxy_url": f"{_DIRECT}://"}
    net = NetworkSelector(**whole)
    return KafkaNetClient(net=net, manager=_Manager(net, **whole), **whole)


class _ClosedOnFailure(KafkaNetSocket):
    """A direct connection; the library picks it by the scheme of its proxy address."""

    SCHEMES: ClassVar = (_DIRECT,)

    async def sock_connect(
        self, net: Any, sock: Any, sockaddr: Any, timeout_at: float | None = None
    ) -> Any:
        try:
            return await super().sock_connect(net, sock, sockaddr, timeout_at=timeout_at)
        except BaseException:
            sock.close()
            raise


class _LastAnswerKept:
    """Hands on what came before the end of the stream; the end shows at the next read."""

    def _sock_recv(self) -> tuple[bytes, Exception | None]:
        received, failure = super()._sock_recv()  # type: ignore[misc]
        return (received, None) if received else (received, failure)


class _TcpTransport(_LastAnswerKept, KafkaTCPTransport):
    pass


class _SslTransport(_LastAnswerKept, KafkaSSLTransport):
    pass


class _Manager(KafkaConnectionManager):
    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        """The library's own steps, with the transports above, closed when the handshake fails."""
        sock = await create_connection(
            self._net,
            node.host,
            node.port,
            self.config["socket_options"],
            proxy_url=self.config["proxy_url"],
            timeout_at=timeout_at,
        )
        if self.ssl_enabled:
            settings = {key: each for key, each in self.config.items() if key.startswith("ssl_")}
            transport = _SslTransport(self._net, sock, host=node.host, **settings)
        else:
            transport = _TcpTransport(self._net, sock, host=node.host)
        try:
            await transport.handshake()
        except Exception as failure:
            transport.abort(failure)
            raise kafka_errors.KafkaConnectionError(f"Handshake failed: {failure}") from failure
        return transport
