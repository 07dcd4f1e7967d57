"""A feed's labels: a word on who owns it, and on whatever else people sort and route feeds by.

They become tags of DAGs, names of metrics' labels, and words of pages and mails: so a name is one
that Prometheus takes, a value is one line that can be seen, and the runbook's is a link.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from tallystick.settings.spark_conf import carries_secret

OWNER: Final = "owner"
RUNBOOK: Final = "runbook"
# With a colon between, name and value are a tag of Airflow's: at most 100.
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,31}")
_LONGEST: Final = 64
_LINK: Final = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{1,1000}")


def refusal_of_label(name: str, value: str) -> str | None:
    """Says why a feed may not have this label; None if it may."""
    if not _NAME.fullmatch(name) or name == "feed":
        return "a label's name is 1 to 32 of a-z, 0-9, '_', begins with a letter, and is not 'feed'"
    if carries_secret(name, value):
        return "it looks like a secret, which would show in pages, mails and metrics"
    if name == RUNBOOK:
        return None if _is_link(value) else "it must be a link, http or https, without a user"
    if not value.strip() or not value.isprintable() or len(value) > _LONGEST:
        return f"it must be one line of 1 to {_LONGEST} characters that can be seen"
    return None


def _is_link(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return bool(_LINK.fullmatch(text) and parts.hostname and "@" not in parts.netloc)
