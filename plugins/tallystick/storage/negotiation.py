"""Kerberos on WebHDFS: whose ticket a request carries, and what it means when there is none.

The only module that needs `requests-gssapi`, which stands on the system's Kerberos libraries.
"""

from __future__ import annotations

import logging
import threading
from typing import Final
from uuid import uuid4

import gssapi
import requests
from requests_gssapi import HTTPSPNEGOAuth
from requests_gssapi.exceptions import SPNEGOExchangeError

from tallystick.storage.refusals import NoTicket

# Kerberos' own number for "no KDC of this realm can be reached": it may pass.
_KDC_UNREACHABLE: Final = -1765328228 & 0xFFFFFFFF


class Negotiation(HTTPSPNEGOAuth):
    """Answers a server's "Negotiate"; the cookie that it gets spares the next requests that.

    What a failure says is ours to tell: the library would log it and go on without a ticket.
    Safe to use from threads. The server proves itself by its certificate alone: an answer to a
    cookie, or of a DataNode, has no proof by Kerberos, so none can be asked for.
    """

    def __init__(self, principal: str | None, keytab: str | None) -> None:
        """Takes the process's own ticket cache (KRB5CCNAME) without a keytab."""
        logging.getLogger("requests_gssapi").setLevel(logging.CRITICAL)
        super().__init__()
        self._principal, self._keytab = principal, keytab
        self._cache = f"MEMORY:tallystick-{uuid4().hex}"
        # The library keeps one exchange for each host: a second thread's would take its place
        # before the first one has made its first step.
        self._one_at_a_time = threading.Lock()

    def generate_request_header(
        self, response: requests.Response, host: str, is_preemptive: bool = False
    ) -> str:
        """The header's value; raises NoTicket."""
        try:
            with self._one_at_a_time:
                self.creds = self._credentials()
                return str(super().generate_request_header(response, host, is_preemptive))
        except gssapi.exceptions.GSSError as error:
            raise self._no_ticket(error) from None
        except SPNEGOExchangeError as error:
            raise self._no_ticket(error.__context__ or error) from None

    def _credentials(self) -> gssapi.Credentials | None:
        """Asks anew each time, so a ticket that has ended is no reason to stop."""
        if self._principal is None or self._keytab is None:
            # Looked for by itself, the missing cache has a name; SPNEGO knows "no mechanism" only.
            gssapi.Credentials(usage="initiate", mechs=[gssapi.MechType.kerberos])
            return None
        name = gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        store = {"client_keytab": self._keytab, "ccache": self._cache}
        return gssapi.Credentials(name=name, usage="initiate", store=store)

    def _no_ticket(self, error: BaseException) -> NoTicket:
        by = f"{self._principal} by {self._keytab}: " if self._keytab else ""
        if not isinstance(error, gssapi.exceptions.GSSError):
            return NoTicket(f"{by}{error}", may_pass=False)
        words = error.get_all_statuses(error.min_code, False) or [str(error)]
        may_pass = error.min_code & 0xFFFFFFFF == _KDC_UNREACHABLE
        return NoTicket(by + "; ".join(words), may_pass=may_pass)
