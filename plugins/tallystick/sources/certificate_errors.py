"""Tells a certificate that is not trusted from other trouble of TLS, whoever reports it."""

from __future__ import annotations

import ssl


def is_about_certificates(failure: BaseException) -> bool:
    """True where we don't trust their certificate, or they ours, or they ask for one.

    A broker says so at the first read behind a handshake that seemed to end well (TLS 1.3).
    """
    if isinstance(failure, ssl.SSLError):
        reason = failure.reason or ""
        return "CERTIFICATE" in reason or "UNKNOWN_CA" in reason
    # kafka-python chains the cause, requests and urllib3 wrap it.
    inner = (failure.__cause__, getattr(failure, "reason", None), *failure.args)
    return any(is_about_certificates(each) for each in inner if isinstance(each, BaseException))
