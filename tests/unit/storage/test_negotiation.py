"""Tickets for many threads by one object; a stand-in takes the place of the library."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


class Exchange:
    """As the library does it: a context is kept for the host, then makes its first step."""

    def __init__(self) -> None:
        self.context: dict[str, object] = {}

    def generate_request_header(self, _response: object, host: str, _early: bool) -> str:
        mine = f"{threading.get_ident()} {time.monotonic_ns()}"
        self.context[host] = mine
        time.sleep(0.01)  # the KDC is asked
        assert self.context[host] == mine
        return mine


@pytest.fixture
def negotiation(monkeypatch: pytest.MonkeyPatch) -> Any:
    library, errors, gssapi = (
        ModuleType(name) for name in ("requests_gssapi", "requests_gssapi.exceptions", "gssapi")
    )
    library.HTTPSPNEGOAuth = Exchange  # type: ignore[attr-defined]
    errors.SPNEGOExchangeError = type("E", (Exception,), {})  # type: ignore[attr-defined]
    gssapi.exceptions = SimpleNamespace(GSSError=type("G", (Exception,), {}))  # type: ignore[attr-defined]
    gssapi.Credentials = lambda **_: None  # type: ignore[attr-defined]
    gssapi.MechType = SimpleNamespace(kerberos=None)  # type: ignore[attr-defined]
    for module in (library, errors, gssapi):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    name = "tallystick.storage.negotiation"
    monkeypatch.delitem(sys.modules, name, raising=False)
    made = importlib.import_module(name).Negotiation(None, None)
    monkeypatch.delitem(sys.modules, name)
    return made


def test_threads_do_not_take_each_other_s_exchange(negotiation: Any) -> None:
    with ThreadPoolExecutor(8) as threads:
        asked = [threads.submit(negotiation.generate_request_header, None, "nn") for _ in range(16)]
    assert len({each.result() for each in asked}) == 16
