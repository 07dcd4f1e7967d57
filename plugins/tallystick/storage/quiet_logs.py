"""Libraries below a request log no secrets that URLs and headers hold.

urllib3 logs each URL at DEBUG, and at WARNING one whose answer it can't read: a delegation token is
part of a URL, ours and the one that a NameNode leads to.
"""

from __future__ import annotations

import logging
import re
from typing import Final

# urllib3.connection is asked too: its releases have not agreed on who tells of headers.
_TALKATIVE: Final = (
    "urllib3.connection",
    "urllib3.connectionpool",
    "urllib3.poolmanager",
    "urllib3.response",
    "urllib3.util.retry",
)
# Headers that can't be read are logged as a text literal, so a backslash ends a line in it.
_SECRET: Final = re.compile(
    r"(delegation(?:=|%3D))[^&\s\"'\\]+|((?:set-)?cookie:\s*[^=\s;]+=)[^;\r\n\\]+"
    r"|(authorization:\s*)[^\r\n\\]+",
    re.IGNORECASE,
)


def keep_secrets_from_logs() -> None:
    """Keeps tokens out of these libraries' loggers from now on; may be called again."""
    # It tells each client that is made, by its address.
    logging.getLogger("hdfs").setLevel(logging.WARNING)
    for name in _TALKATIVE:
        logging.getLogger(name).addFilter(_blotted)


def _blotted(record: logging.LogRecord) -> bool:
    """True: nothing is left out but secrets, and a traceback, whose text may hold them again."""
    record.msg, record.args = _SECRET.sub(_without_value, record.getMessage()), ()
    record.exc_info = record.exc_text = None
    return True


def _without_value(found: re.Match[str]) -> str:
    return f"{found[1] or found[2] or found[3]}(not shown)"
