"""A pipe before a server that speaks in clear: with a certificate it speaks TLS to its clients."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HOST = "127.0.0.1"


@dataclass
class Pipe:
    """Where clients connect, and what they have sent there, decrypted."""

    port: int = 0
    heard: bytearray = field(default_factory=bytearray)


@contextmanager
def pipe_to(target: int, certificate: Path | None = None) -> Iterator[Pipe]:
    """Carries bytes to the local port and back, until the block ends."""
    pipe, is_up = Pipe(), threading.Event()
    ends: list[asyncio.StreamWriter] = []
    loop, is_over = asyncio.new_event_loop(), asyncio.Event()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, questions = await asyncio.open_connection(HOST, target)
        ends.extend((writer, questions))
        await asyncio.gather(
            _carried(reader, questions, pipe.heard), _carried(answers, writer, bytearray())
        )

    async def run() -> None:
        server = await asyncio.start_server(served, HOST, 0, ssl=_context(certificate))
        pipe.port = server.sockets[0].getsockname()[1]
        is_up.set()
        await is_over.wait()
        server.close()
        for each in ends:
            each.transport.abort()
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    try:
        assert is_up.wait(10)
        yield pipe
    finally:
        loop.call_soon_threadsafe(is_over.set)
        thread.join(10)
        loop.close()


async def _carried(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, heard: bytearray
) -> None:
    try:
        while data := await source.read(1 << 16):
            heard += data
            sink.write(data)
            await sink.drain()
    except OSError:
        pass  # one side has gone
    finally:
        sink.transport.abort()


def _context(certificate: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(["h2"])
    return context


def write_certificate(path: Path, name: str) -> Path:
    """A key, and a certificate for the name and this machine's address that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    names: list[x509.GeneralName] = [x509.DNSName(name)]
    if name == "localhost":
        names.append(x509.IPAddress(ipaddress.ip_address(HOST)))
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path
